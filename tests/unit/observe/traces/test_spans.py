"""Spans of events: names, parents, attributes and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from noetl.dsl.tree.pin import unpinned
from noetl.engine.plan.plan import plan
from noetl.model.messages import Cancel
from noetl.observe.traces import spans
from noetl.observe.traces.spans import Span, TraceFold, spans_of
from noetl.trace_context import trace_id_of
from tests.unit.worker.system import System, system

pytestmark = pytest.mark.asyncio


async def fold(run: System, execution_id: str, **more: Any) -> list[Span]:
    """Return the spans of an execution."""
    events = await run.store.read(execution_id)
    data = await run.store.canonical(str(events[0].payload["playbook"]))
    assert data is not None
    return spans_of(TraceFold(execution_id, plan(unpinned(data), "hash"), **more), events)


async def traced(workflow: str, **payload: Any) -> list[Span]:
    """Run a playbook to its end; return its spans."""
    async with system() as run:
        started = await run.start(workflow, **payload)
        await run.ended(started)
        return await fold(run, started)


def named(found: list[Span], name: str) -> list[Mapping[str, Any]]:
    return [span.attributes for span in found if span.name == name]


def parents(found: list[Span]) -> dict[str, str]:
    """Return the name of each span's parent, by the name of the span."""
    ids = {span.span_id: span.name for span in found}
    return {span.name: ids.get(span.parent_id, "") for span in found}


async def test_steps_arcs_and_attempts() -> None:
    found = await traced(
        """
        - step: one
          tool: {kind: python, code: "result = x + 1", input: {x: 1}}
          next: [{step: two, when: "{{ one == 2 }}"}]
        - step: two
          tool: {kind: noop}
        """,
        rows=[1, 2],
    )
    assert parents(found) == {
        "server.execution": "", "server.dispatch": "server.execution", "server.route": "server.execution",
        "worker.plugin.python": "server.dispatch", "worker.plugin.noop": "server.dispatch",
    }  # fmt: skip
    [root] = named(found, "server.execution")
    assert (root["workflow_ref"], root["workload_size"], root["status"]) == ("tests/test", 14, "completed")
    [route] = named(found, "server.route")
    assert (route["from_step"], route["edge_index"], route["target_step"]) == ("one", 0, "two")
    assert route["condition"] == "{{ one == 2 }}"
    [attempt] = named(found, "worker.plugin.python")
    assert (attempt["spec_signature"], attempt["args_signature"], attempt["attempt"]) == ("code", "{x: int}", 1)
    assert len({span.span_id for span in found}) == len(found)


async def test_each_attempt_is_a_span_and_a_failure_is_a_status() -> None:
    found = await traced(
        """
        - step: flaky
          tool:
            - fails:
                kind: python
                code: raise ValueError("broken")
                spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3, delay: 0.01}}]}}
        """
    )
    assert [attempt["attempt"] for attempt in named(found, "worker.plugin.python")] == [1, 2, 3]
    errors = {span.name: span.error for span in found}
    assert errors["worker.plugin.python"] == "FatalError: ValueError: broken (line 1 of the code)"
    assert errors["server.dispatch"] == errors["server.execution"] == errors["worker.plugin.python"]


async def test_ranges_and_items_of_a_loop() -> None:
    found = await traced(
        """
        - step: each
          loop: {in: [1, 0, 2], iterator: n, spec: {policy: {failure: {mode: best_effort}}}}
          tool:
            - first: {kind: noop}
            - last: {kind: python, code: "result = 1 // n", input: {n: "{{ n }}"}}
        """
    )
    whole, part = sorted(
        (span for span in found if span.name == "server.dispatch"), key=lambda span: "loop_index" in span.attributes
    )
    assert part.parent_id == whole.span_id
    assert (part.attributes["loop_index"], part.attributes["loop_count"], part.attributes["loop_failed"]) == (0, 3, 1)
    firsts = [span for span in found if span.name == "worker.plugin.noop"]
    assert {span.parent_id for span in firsts} == {part.span_id}
    assert sorted(span.attributes["loop_index"] for span in firsts) == [0, 1, 2]
    lasts = {
        span.attributes["loop_index"]: span.attributes["ok"] for span in found if span.name == "worker.plugin.python"
    }
    assert lasts == {0: True, 1: False, 2: True}


async def test_gates_belong_to_the_run_that_they_let_in() -> None:
    found = await gated()
    gates = {gate["step_id"]: gate["outcome"] for gate in named(found, "server.when_eval")}
    assert gates == {"open": "true", "shut": "false", "wrong": "error"}
    [run] = [span for span in found if span.name == "server.dispatch" and span.attributes["step_id"] == "open"]
    [gate] = [span for span in found if span.name == "server.when_eval" and span.attributes["step_id"] == "open"]
    assert gate.parent_id == run.span_id


async def gated() -> list[Span]:
    """Return the spans of an execution with parked tokens, which never ends."""
    async with system() as run:
        started = await run.start(
            """
            - step: one
              tool: {kind: noop}
              next: {spec: {mode: inclusive}, arcs: [{step: open}, {step: shut}, {step: wrong}]}
            - step: open
              spec: {policy: {admit: {rules: [{when: "{{ 1 == 1 }}", then: {allow: true}}]}}}
              tool: {kind: noop}
            - step: shut
              spec: {policy: {admit: {rules: [{when: "{{ ctx.never }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
              tool: {kind: noop}
            - step: wrong
              spec: {policy: {admit: {rules: [{when: "{{ 1 / 0 }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
              tool: {kind: noop}
            """
        )
        await run.until(started, "token.parked")
        async for event in run.control.follow(started):
            if event.event_type == "step.done" and event.entity_id == "open":
                break
        return await fold(run, started)


async def test_what_has_not_ended_lasts_until_now() -> None:
    async with system() as run:
        started = await run.start("- step: ask\n  tool: {kind: wait, signal: go}\n")
        await run.until(started, "step.suspended")
        found = await fold(run, started)
        assert [(span.name, span.attributes["open"]) for span in found] == [
            ("server.dispatch", True), ("server.execution", True),
        ]  # fmt: skip
        await run.tell(started, Cancel("stop"))
        await run.ended(started)
        found = await fold(run, started)
    assert {span.name: span.error for span in found}["server.execution"] != ""
    assert not any("open" in span.attributes for span in found)


async def test_a_trace_is_that_of_the_execution_or_of_who_started_it() -> None:
    async with system() as run:
        started = await run.start("- step: one\n  tool: {kind: noop}\n")
        await run.ended(started)
        assert {span.trace_id for span in await fold(run, started)} == {trace_id_of(started)}
        outer = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        found = await fold(run, started, outer=outer)
    assert {span.trace_id for span in found} == {outer[3:35]}
    assert found[-1].parent_id == outer[36:52]


async def test_the_spans_of_an_execution_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MOST_SPANS", 4)
    steps = "".join(f"- step: s{n}\n  tool: {{kind: noop}}\n  next: s{n + 1}\n" for n in range(5))
    found = await traced(f"{steps}- step: s5\n  tool: {{kind: noop}}\n")
    assert len(found) == 5
    assert found[-1].attributes["spans_dropped"] > 0
