"""A real OTLP receiver gets connected traces, which the log gives again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Received

from noetl.observe.traces.history import read_trace
from noetl.observe.traces.sending import open_sender
from noetl.observe.traces.spans import Span
from noetl.observe.traces.table import ALL, kind_of
from noetl.settings import TRACING_ENDPOINT, TRACING_HEADERS, TracingSettings, settings
from noetl.trace_context import parse_traceparent, trace_id_of
from tests.client.working import working
from tests.observe.receiving import REMOTE, Places, Receiver, attributes, places
from tests.server.serving import PATIENCE_S, Served, happens, in_process, listening, playbook

pytestmark = pytest.mark.asyncio
CHILD = playbook("  - step: inner\n    spec: {pool: two}\n    tool: {kind: noop, result: 7}\n", "child")
PARENT = """
  - step: call
    spec: {pool: one, policy: {admit: {rules: [{when: "{{ workload.n == 1 }}", then: {allow: true}}]}}}
    tool:
      - ask:
          kind: http
          url: "{{ workload.web }}/text?token=abc"
          args: {q: "{{ workload.n }}"}
          set: {ctx.trace_id: "{{ outcome.meta.trace_id }}"}
    next: {spec: {mode: exclusive}, arcs: [{step: each, when: "{{ call.ask.status == 200 }}"}]}
  - step: each
    spec: {pool: two}
    loop: {in: [1, 2, 3], iterator: item, spec: {mode: parallel, max_in_flight: 2}}
    tool:
      - get: {kind: http, url: "{{ workload.web }}/text"}
    next: save
  - step: save
    spec: {pool: one}
    tool:
      - make: {kind: duckdb, database: DATABASE, command: "CREATE TABLE rows (id INT)"}
      - write: {kind: duckdb, database: DATABASE, table: rows, mode: insert, values: [{id: 1}, {id: 2}]}
    next: child
  - step: child
    spec: {pool: one}
    tool: {kind: playbook, path: test/child}
"""
FAILS = playbook("  - step: bad\n    tool: {kind: python, code: 'raise ValueError(1)'}\n", "bad")
FINE = playbook("  - step: fine\n    tool: {kind: noop}\n", "fine")


def same(received: Sequence[Received], made: Sequence[Span]) -> None:
    """Compare what a receiver got with spans that were made of the log."""
    left = sorted(
        (one.span_id.hex(), one.parent_span_id.hex(), one.name, one.start_time_unix_nano // 10**6,
         one.end_time_unix_nano // 10**6, sorted(attributes(one).items()), one.status.message)
        for one in received
    )  # fmt: skip
    right = sorted(
        (one.span_id, one.parent_id, one.name, one.start, one.end, sorted(one.attributes.items()), one.error)
        for one in made
    )
    assert left == right


def check_attributes(spans: Sequence[Received]) -> None:
    """Check that the table has every span, and each attribute of the table is on one."""
    seen = {one.name: set[str]() for one in ALL}
    for span in spans:
        kind = kind_of(span.name)
        assert kind is not None, span.name
        found = set(attributes(span)) - {"execution_id"}
        assert found <= set(kind.attributes), span.name
        seen[kind.name] |= found
    rare = {"error_class", "loop_index"}  # of failures; of sinks in loops
    assert {name: set(kind.attributes) - seen[name] - rare for kind in ALL for name in [kind.name]} == {
        one.name: set() for one in ALL
    }


async def received(receiver: Receiver, trace_id: str, roots: int = 1) -> list[Received]:
    """Wait until executions of a trace have been received whole."""
    await happens(
        lambda: sum(span.name == "server.execution" for span in receiver.of(trace_id)) == roots, "a whole trace"
    )
    return receiver.of(trace_id)


async def test_one_trace_over_two_workers_and_a_child_is_the_same_from_the_log(tmp_path: Path) -> None:
    with places() as found:
        tracing = TracingSettings(endpoint=found.receiver.url, sample_rate=1)
        async with (
            listening(tmp_path, tracing=tracing) as served,
            working(tmp_path / "one", served.url, name="w-1", pools=("one",)),
            working(tmp_path / "two", served.url, name="w-2", pools=("two",)),
        ):
            await served.register(CHILD)
            text = playbook(PARENT, "parent", workload={"web": found.web.url, "n": 1})
            started = await served.start(text.replace("DATABASE", str(tmp_path / "rows.duckdb")))
            assert (await served.until(started, "completed", "failed"))["status"] == "completed"
            spans = await received(found.receiver, trace_id_of(started), roots=2)
            made = await read_trace(served.services.store, started, tracing.of_executions)
            row = await served.json("GET", f"/api/executions/{started}")
    same(spans, made)
    check_attributes(spans)
    ids, named = {span.span_id for span in spans}, dict[str, list[dict[str, Any]]]()
    assert [span.name for span in spans if span.parent_span_id not in ids] == ["server.execution"]  # it is connected
    for span in spans:
        named.setdefault(span.name, []).append(attributes(span))
    assert set(named) == {
        "server.execution", "server.dispatch", "server.route", "server.when_eval", "worker.plugin.http",
        "worker.plugin.duckdb", "worker.plugin.playbook", "worker.plugin.noop", "worker.sink.duckdb:rows",
    }  # fmt: skip
    assert {one.get("worker_id") for one in named["server.dispatch"]} >= {"w-1", "w-2"}
    [sink] = named["worker.sink.duckdb:rows"]
    assert (sink["sink_type"], sink["table"], sink["mode"], sink["rows_written"]) == ("duckdb", "rows", "insert", 2)
    [gate] = named["server.when_eval"]
    assert (gate["step_id"], gate["outcome"], gate["when_expr"]) == ("call", "true", "{{ workload.n == 1 }}")
    first = next(one for one in named["worker.plugin.http"] if one["step_id"] == "call")
    assert (first["spec_signature"], first["attempt"]) == ("GET {workload.web}/text", 1)
    assert {one["loop_index"] for one in named["worker.plugin.http"] if one["step_id"] == "each"} == {0, 1, 2}
    assert {one["workflow_ref"] for one in named["server.execution"]} == {"test/parent", "test/child"}
    assert (row["trace_id"], row["ctx"]) == (trace_id_of(started), {"trace_id": trace_id_of(started)})


async def test_requests_of_tasks_continue_the_trace_and_link_to_the_answer(tmp_path: Path) -> None:
    with places() as found:
        tracing = TracingSettings(endpoint=found.receiver.url, sample_rate=1)
        async with in_process(tmp_path, tracing=tracing) as served, served.embedded.run_worker("one"):
            text = PARENT.partition("    next: {spec: {mode: exc")[0]
            started = await served.start(playbook(text, "calls", workload={"web": found.web.url, "n": 1}))
            await served.until(started, "completed", "failed")
            spans = await received(found.receiver, trace_id_of(started))
    [asked] = found.web.asked
    sent = parse_traceparent(asked.headers["traceparent"])
    assert sent is not None
    [plugin] = [span for span in spans if span.name == "worker.plugin.http"]
    assert (sent.trace_id, sent.span_id, sent.sampled) == (trace_id_of(started), plugin.span_id.hex(), True)
    assert asked.headers["tracestate"] == f"noetl=e:{started};s:call;m:{started}:call#1"
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in plugin.links] == [(REMOTE[3:35], REMOTE[36:52])]


async def test_a_trace_of_the_caller_goes_on(tmp_path: Path) -> None:
    with places() as found:
        tracing = TracingSettings(endpoint=found.receiver.url, sample_rate=0)
        async with in_process(tmp_path, tracing=tracing) as served, served.embedded.run_worker(""):
            started = await served.start(FINE, trace=REMOTE)
            await served.until(started, "completed")
            spans = await received(found.receiver, REMOTE[3:35])
    [root] = [span for span in spans if span.name == "server.execution"]
    assert root.parent_span_id.hex() == REMOTE[36:52]


async def sent_of(served: Served, found: Places, content: str, **more: Any) -> str:
    started = await served.start(content, **more)
    await served.until(started, "completed", "failed")
    return trace_id_of(started)


async def test_failures_are_sent_whole_and_others_by_their_share(tmp_path: Path) -> None:
    with places() as found:
        tracing = TracingSettings(endpoint=found.receiver.url, sample_rate=0)
        async with in_process(tmp_path, tracing=tracing) as served, served.embedded.run_worker(""):
            fine = await sent_of(served, found, FINE)
            forced = await sent_of(served, found, FINE, payload={"trace": True})
            failed = await sent_of(served, found, FAILS)
            names = {span.name for span in await received(found.receiver, failed)}
            await received(found.receiver, forced)
    assert names == {"server.execution", "server.dispatch", "worker.plugin.python"}
    assert {span.trace_id.hex() for span in found.receiver.spans} == {forced, failed}
    assert fine not in {forced, failed}


async def test_a_dead_receiver_slows_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tracing = TracingSettings(endpoint="http://127.0.0.1:1", sample_rate=1)
    with caplog.at_level(logging.WARNING, "noetl.observe"):
        async with in_process(tmp_path, tracing=tracing) as served, served.embedded.run_worker(""):
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(sent_of(served, Places(None, None), FINE) for _ in range(20)))  # type: ignore[arg-type]
            await happens(lambda: bool(caplog.records), "a warning")
    assert ["Traces cannot be sent" in record.getMessage() for record in caplog.records] == [True]


async def test_headers_go_to_the_receiver_of_the_settings_alone() -> None:
    with places() as found, places() as other:
        given = {TRACING_ENDPOINT: f"{found.receiver.url}/", TRACING_HEADERS: "Authorization=Bearer a=b, X-Org=2"}
        found_settings = settings(given, Path())
        for receiver in (found.receiver, other.receiver):
            sender = open_sender(found_settings, receiver.url)
            assert sender is not None
            async with sender:
                await sender.send([Span("1" * 32, "2" * 16, "", "server.execution", 1, 2)])
    [asked], [elsewhere] = found.receiver.asked, other.receiver.asked
    assert (asked.headers["authorization"], asked.headers["x-org"]) == ("Bearer a=b", "2")
    assert not {"authorization", "x-org"} & {name.lower() for name in elsewhere.headers}
    assert len(found.receiver.spans) == len(other.receiver.spans) == 1


async def test_without_a_receiver_nothing_is_traced(tmp_path: Path) -> None:
    with places() as found:
        async with in_process(tmp_path) as served, served.embedded.run_worker("one"):
            text = PARENT.partition("    next: {spec: {mode: exc")[0]
            started = await served.start(playbook(text, "calls", workload={"web": found.web.url, "n": 1}))
            row = await served.until(started, "completed", "failed")
            assert row["trace_id"] is None
            made = await read_trace(served.services.store, started)
    [asked] = found.web.asked
    assert "traceparent" not in asked.headers
    assert made[0].name == "server.execution"  # its trace can be made of the log all the same
