"""Results of real pipelines are kept once, and every form of template reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from noetl.model.outcome import ok
from noetl.model.refs import COMPACT
from noetl.tools import kinds
from noetl.worker.steps.run_step import StepWork
from tests.unit.worker.system import System, system

pytestmark = pytest.mark.asyncio
SIZE = 60_000


async def done(made: System, execution: str, step: str) -> Any:
    (event,) = [event for event in await made.events(execution, "step.done") if event.entity_id == step]
    return event.payload["result"]


FORMS = """
- step: s
  tool:
    - a: {kind: noop, result: {x: 1}}
    - b: {kind: noop, result: {field: 2, a: own, data: {deep: 3}}}
  set: {ctx.seen: "{{ [s.field, s.results.a.x, outcome.data.field, output.result.results.b.field] }}"}
  next:
    spec: {mode: exclusive}
    arcs: [{step: read, when: "{{ s.b.field == 2 and s.a == 'own' and s.deep == 3 }}"}]
- step: read
  tool:
    kind: python
    input: {whole: "{{ s }}", forms: "{{ [s.field, s.b.field, s.results.b.field, s.data.deep, s.results.a.x] }}"}
    code: "result = {'forms': forms, 'keys': sorted(whole), 'same': whole['b'] == whole['results']['b']}"
"""


async def test_every_form_reads_a_pipeline() -> None:
    async with system() as made:
        execution = await made.start(FORMS)
        row = await made.ended(execution)
        assert row["status"] == "completed", row
        keys = ["a", "b", "data", "field", "results"]
        assert row["result"] == {"forms": [2, 2, 2, 3, 1], "keys": keys, "same": True}
        last = {"field": 2, "a": "own", "data": {"deep": 3}}
        kept = {"kind": COMPACT, "results": {"a": {"x": 1}, "b": last}, "last": "b"}
        assert await done(made, execution, "s") == kept


@pytest.mark.parametrize("is_flushed", [False, True])
@pytest.mark.parametrize("count", [2, 20])
async def test_a_pipeline_with_much_in_all_is_stored_and_read(
    count: int, is_flushed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failure_context(work: StepWork, *_: Any) -> None:
        await work._reporter.flush()  # as the worker does at any time

    if is_flushed:
        monkeypatch.setattr(StepWork, "_failure_context", failure_context)
    tasks = "".join(
        f"    - t{n}: {{kind: python, code: \"result = {{'n': {n}, 'text': 'x' * {SIZE}}}\"}}\n" for n in range(count)
    )
    reads = ", ".join(f"s.t{n}.text | length, s.results.t{n}.n" for n in range(count))
    workflow = f"""- step: s
  tool:
{tasks}  next:
    spec: {{mode: exclusive}}
    arcs: [{{step: read, when: "{{{{ s.t0.n == 0 and s.n == {count - 1} and s.t1.text | length == {SIZE} }}}}"}}]
- step: read
  tool: {{kind: noop, result: {{all: "{{{{ [{reads}] }}}}", last: "{{{{ s.text | length }}}}"}}}}
"""
    async with system() as made:
        execution = await made.start(workflow)
        row = await made.ended(execution)
        assert row["status"] == "completed", row
        assert row["result"] == {"all": [part for n in range(count) for part in (SIZE, n)], "last": SIZE}
        assert len(msgspec.json.encode(await done(made, execution, "s"))) <= 64 * 1024
        sizes = [len(msgspec.json.encode(event.payload)) for event in await made.store.read(execution)]
        assert max(sizes) < 2 * 64 * 1024  # arcs record the values that they read, shortened


async def test_a_child_keeps_its_result_once() -> None:
    child = """
- step: work
  tool: [{name: a, kind: noop, result: {x: 1}}, {name: b, kind: noop, result: {y: 2}}]
"""
    parent = """
- step: call
  tool: {kind: playbook, path: tests/child}
- step: read
  tool: {kind: noop, result: "{{ [call.y, call.a.x, call.results.b.y, call.data.y] }}"}
"""
    async with system() as made:
        await made.ended(await made.start(child, path="tests/child"))
        execution = await made.start(parent.replace("tests/child}", "tests/child}\n  next: [{step: read}]"))
        row = await made.ended(execution)
        assert row["result"] == [2, 1, 2, 2], row
        assert (await done(made, execution, "call"))["kind"] == COMPACT


class Responding:
    """Tools whose `http` responds with a text of some size."""

    def __init__(self, size: int) -> None:
        self._body = {"x": 5, "text": "y" * size}

    def runner(self, kind: str) -> Any:
        async def run(_fields: Any, _context: Any) -> Any:
            return ok({"status": 200, "status_code": 200, "data": self._body, "body": self._body})

        return run if kind == "http" else kinds().runner(kind)


@pytest.mark.parametrize(("size", "is_stored"), [(40_000, False), (70_000, True)])
async def test_the_body_of_a_response_is_kept_once(size: int, is_stored: bool) -> None:
    workflow = """
- step: get
  tool: {kind: http, url: "http://127.0.0.1:1"}
  set: {ctx.x: "{{ [outcome.data.body.x, output.result.data.x, get.body.x] }}"}
  next: {spec: {mode: exclusive}, arcs: [{step: read, when: "{{ get.body.x == 5 and get.data.x == 5 and get.x == 5 }}"}]}
- step: read
  tool:
    kind: python
    input: {whole: "{{ get }}", some: "{{ [get.body.x, get.data.x, get.data.text | length, get.body.text | length] }}"}
    code: "result = [whole['body'] == whole['data'], *some, *context['ctx']['x']]"
"""
    async with system(0) as made:
        made.shared = replace(made.shared, tools=Responding(size))
        made.worker()
        execution = await made.start(workflow)
        row = await made.ended(execution)
        assert row["result"] == [True, 5, 5, size, size, 5, 5, 5], row
        kept = await done(made, execution, "get")
        assert kept["kind"] == ("result_ref" if is_stored else COMPACT)
        assert len(msgspec.json.encode(kept)) < (3_000 if is_stored else size + 300)
        if is_stored:
            assert kept["meta"]["bytes"] < size + 300
            by_address = {name: kept[name] for name in ("kind", "ref")}
            loaded = await made.shared.results.load(by_address)  # type: ignore[union-attr]
            assert loaded["body"] is loaded["data"]
