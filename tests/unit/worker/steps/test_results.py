"""Large results: stored, referenced, read by later steps and the server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from noetl.blobs import pieces
from noetl.blobs.memory import MemoryBlobs
from noetl.clock import SteadyClock
from noetl.engine.tasks.actions import RunTask
from noetl.model.errors import BadReference, StoreUnavailable
from noetl.model.outcome import Outcome, TaskError, ok
from noetl.tools import kinds
from noetl.worker.steps.results import StoredResults
from tests.unit.worker.system import System, system

pytestmark = pytest.mark.asyncio
ROWS = "[{'id': i, 'text': 'x' * 90} for i in range(1000)]"
MAKE = f"""
- step: make
  tool: {{kind: python, code: "result = {{'total': 1000, 'rows': {ROWS}}}"}}
"""
WHERE = {"execution_id": "7", "step": "s", "number": 1, "index": None}
LARGE = {"n": 7, "rows": ["x" * 100] * 1000}


def task(**spec: Any) -> RunTask:
    return RunTask("t", "noop", {}, {}, {}, 1, "7:s:t", spec=spec)


def results() -> StoredResults:
    return StoredResults(MemoryBlobs(), SteadyClock())


# In an execution


async def result(made: System, workflow: str) -> Any:
    row = await made.run(workflow)
    assert row["status"] == "completed", row
    return row["result"]


async def test_a_later_step_reads_a_part_and_the_whole() -> None:
    read = """
    next: [read]
- step: read
  tool:
    kind: python
    input: {row: "{{ make.rows[3] }}", count: "{{ make.rows | length }}", ref: "{{ make._ref }}", all: "{{ make }}"}
    code: "result = {'row': row['id'], 'count': count, 'ref': ref, 'keys': sorted(all)}"
"""
    async with system() as made:
        found = await result(made, MAKE + read.replace("    next", "  next", 1))
        assert found["row"] == 3
        assert found["count"] == 1000
        assert found["keys"] == ["rows", "total"]
        assert found["ref"] == "noetl://execution/1001/step/make/task/make_task/run/1/attempt/1"


async def test_the_log_holds_the_reference_and_not_the_rows() -> None:
    async with system() as made:
        execution = await made.start(MAKE)
        await made.ended(execution)
        (done,) = await made.events(execution, "step.done")
        ref = done.payload["result"]
        assert ref["kind"] == "result_ref"
        assert {"ref", "store", "scope", "expires_at", "meta", "extracted", "preview"} < set(ref)
        assert len(ref["preview"]) == 1024
        (stored,) = await made.events(execution, "result.stored")
        assert stored.payload["meta"] == ref["meta"]
        assert stored.payload["ref"] == ref["ref"]


async def test_the_server_decides_by_what_lies_beside() -> None:
    arcs = """
  set: {ctx.total: "{{ outcome.result.total }}"}
  next:
    spec: {mode: exclusive}
    arcs:
      - {step: wrong, when: "{{ make.rows[0].id != 0 or output.data.total != 1000 }}"}
      - {step: right, args: {second: "{{ make.data.rows[1].id }}"}}
- step: wrong
  tool: {kind: noop}
- step: right
  tool: {kind: noop, result: {second: "{{ args.second }}", total: "{{ ctx.total }}"}}
"""
    async with system() as made:
        assert await result(made, MAKE + arcs) == {"second": 1, "total": 1000}


async def test_a_list_that_the_server_loops_over_is_read_from_its_store() -> None:
    loop = """
  next: [each]
- step: each
  loop: {in: "{{ make.rows }}", iterator: row, spec: {mode: parallel}}
  tool: {kind: noop, result: "{{ iter.row.id }}"}
"""
    async with system() as made:
        assert (await result(made, MAKE + loop))["results"] == list(range(1000))


async def test_tasks_and_labels_of_a_pipeline() -> None:
    workflow = f"""
- step: make
  tool:
    - first: {{kind: python, code: "result = {{'rows': {ROWS}}}"}}
    - second: {{kind: python, input: {{n: "{{{{ _prev.rows | length }}}}"}}, code: "result = {{'n': n, 'more': ['y' * 90] * 1000}}"}}
  next:
    spec: {{mode: exclusive}}
    arcs: [{{step: read, when: "{{{{ make.n == 1000 and make.first.rows[2].id == 2 }}}}"}}]
- step: read
  tool:
    kind: noop
    result:
      n: "{{{{ make.n }}}}"
      more: "{{{{ make.more | length }}}}"
      id: "{{{{ make.first.rows[5].id }}}}"
      same: "{{{{ make.results.first.rows[6].id }}}}"
"""
    async with system() as made:
        assert await result(made, workflow) == {"n": 1000, "more": 1000, "id": 5, "same": 6}


async def test_items_of_a_loop_are_put_away_one_by_one() -> None:
    workflow = """
- step: each
  loop: {in: [1, 2, 3], iterator: n}
  tool: {kind: python, input: {n: "{{ iter.n }}"}, code: "result = {'n': n, 'rows': ['x' * 100] * 1000 * (n % 2)}"}
  next: [read]
- step: read
  tool: {kind: noop, result: {sizes: "{{ each.results | map(attribute='rows') | map('length') | list }}", of: "{{ each.stats.total }}"}}
"""
    async with system() as made:
        assert await result(made, workflow) == {"sizes": [1000, 0, 1000], "of": 3}


async def test_items_that_the_server_reads_are_loaded_for_it() -> None:
    workflow = """
- step: each
  loop: {in: [1, 2], iterator: n}
  tool: {kind: python, input: {n: "{{ iter.n }}"}, code: "result = {'n': n, 'text': 'x' * 100000}"}
  set: {ctx.numbers: "{{ outcome.results | map(attribute='n') | list }}"}
  next: [read]
- step: read
  tool: {kind: noop, result: "{{ ctx.numbers }}"}
"""
    async with system() as made:
        assert await result(made, workflow) == [1, 2]


async def test_a_child_hands_its_large_result_to_its_parent() -> None:
    async with system() as made:
        await made.ended(await made.start(MAKE, path="tests/child"))
        parent = """
        - step: call
          tool: {kind: playbook, path: tests/child}
          next: [{step: read, when: "{{ call.total == 1000 }}"}]
        - step: read
          tool: {kind: noop, result: "{{ call.rows[4].id }}"}
        """
        execution = await made.start(parent, path="tests/parent")
        assert (await made.ended(execution))["result"] == 4
        assert (await made.events(execution, "step.done"))[0].payload["result"]["kind"] == "result_ref"


async def test_a_damaged_result_fails_the_step_that_reads_it() -> None:
    read = """
  next: [wait]
- step: wait
  tool: {kind: wait, signal: go}
  next: [read]
- step: read
  tool: {kind: noop, result: "{{ make.rows[0] }}"}
"""
    from noetl.model.messages import Signal

    async with system() as made:
        execution = await made.start(MAKE + read)
        stored = await made.until(execution, "result.stored")
        await made.until(execution, "step.suspended")
        await made.shared.blobs.put(stored.payload["ref"], b'{"rows": ["wrong"]}', {})
        await made.tell(execution, Signal("signal", "go"))
        row = await made.ended(execution)
        assert row["status"] == "failed"
        assert row["error"]["kind"] == "reference"
        assert "damaged" in row["error"]["message"]


# On their own


async def test_small_results_travel_as_they_are() -> None:
    small: list[Any] = [{"n": 1}, "x" * 60_000, None, 7, []]
    for value in small:
        outcome, ref = await results().keep(task(), ok(value), WHERE)
        assert (outcome.result, ref) == (value, None)


@pytest.mark.parametrize("kind", ["inline", {"kind": "inline"}])
async def test_whoever_wants_it_inline_gets_it_inline(kind: Any) -> None:
    assert (await results().keep(task(result={"store": kind}), ok(LARGE), WHERE))[1] is None


async def test_controls_of_a_task() -> None:
    made = results()
    select = [{"path": "$.n", "as": "number"}, {"path": "$.rows[0]", "as": "first"}]
    store = {"kind": "db", "scope": "workflow", "ttl": "2d", "compression": "gzip"}
    spec = {"inline_max_bytes": 10, "preview_max_bytes": 5, "select": select, "store": store}
    before = SteadyClock().now()
    outcome, ref = await made.keep(task(result=spec), ok({"n": 7, "rows": ["é" * 20]}), WHERE)
    assert ref is not None
    assert outcome.result == {"n": 7, "rows": ["é" * 20]}
    assert ref["extracted"] == {"number": 7, "first": "é" * 20}
    assert (ref["preview"], ref["store"], ref["scope"]) == ('{"n":', "db", "workflow")
    assert ref["meta"]["compression"] == "gzip"
    assert 0 <= ref["expires_at"] - before - 2 * 86_400_000 < 60_000
    assert await made.load(ref) == outcome.result


@pytest.mark.parametrize(
    ("spec", "kind", "words"),
    [
        ({"limits": {"max_result_bytes": 1000}}, "schema", "max_result_bytes"),
        ({"result": {"select": [{"path": "$.[", "as": "x"}]}}, "schema", "JSON path"),
        ({"result": {"select": [{"path": "$.n"}]}}, "schema", "`as`"),
        ({"result": {"store": {"compression": "lz4"}}}, "schema", "lz4"),
        ({"result": {"store": {"ttl": "soon"}}}, "schema", "ttl"),
    ],
)
async def test_what_cannot_be_kept_is_an_error_of_the_task(spec: dict[str, Any], kind: str, words: str) -> None:
    outcome, ref = await results().keep(task(**spec), ok(LARGE), WHERE)
    assert ref is None
    assert outcome.error is not None
    assert outcome.error.kind == kind
    assert words in outcome.error.message


async def test_what_is_not_plain_data_is_refused() -> None:
    odd, _ = await results().keep(task(), ok({"rows": [1, float("inf")], "none": None}), WHERE)
    assert odd.error is not None
    assert (odd.error.kind, "`result.rows[1]`" in odd.error.message) == ("schema", True)
    outcome, _ = await results().keep(task(), ok({"f": object()}), WHERE)
    assert outcome.error is not None
    assert outcome.error.kind == "schema"


class FullBlobs(MemoryBlobs):
    """A store without room."""

    async def put(self, ref: str, data: bytes, meta: Any) -> None:
        raise StoreUnavailable("no space left on device")


async def test_a_full_store_is_an_error_that_says_so() -> None:
    outcome, ref = await StoredResults(FullBlobs(), SteadyClock()).keep(task(), ok(LARGE), WHERE)
    assert ref is None
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.error.sent) == ("reference", True, True)
    assert "no space" in outcome.error.message


# Loops


async def test_a_long_loop_gives_a_manifest_that_later_steps_read_as_a_list() -> None:
    workflow = """
- step: each
  loop: {in: "{{ range(1200) }}", iterator: n, spec: {mode: parallel}}
  tool: {kind: noop, result: {n: "{{ iter.n }}", half: "{{ iter.n // 2 }}", text: some text to make it longer than what travels inline}}
  next: [read]
- step: read
  tool:
    kind: noop
    result:
      one: "{{ each.results[1145].half }}"
      count: "{{ each.results | length }}"
      last: "{{ each.results[-1].n }}"
      of: "{{ each.stats.succeeded }}"
  next: [again]
- step: again
  loop: {in: "{{ each.results }}", iterator: row, spec: {mode: parallel}}
  tool: {kind: noop, result: "{{ iter.row.n - iter.index }}"}
  next: [add]
- step: add
  tool: {kind: noop, result: {differences: "{{ again.results | sum }}", read: "{{ read }}"}}
"""
    async with system(2) as made:
        execution = await made.start(workflow)
        row = await made.ended(execution)
        assert row["status"] == "completed", row
        read = {"one": 572, "count": 1200, "last": 1199, "of": 1200}
        assert row["result"] == {"differences": 0, "read": read}
        done = await made.events(execution, "step.done")
        results = done[0].payload["result"]["results"]
        assert (results["kind"], results["strategy"], results["total"]) == ("manifest_ref", "concat", 1200)
        assert (await made.events(execution, "loop.started"))[1].payload["items"] == results
        assert await made.events(execution, "result.manifest.updated")
        assert max(len(str(event.payload)) for event in await made.store.read(execution)) < 70_000


async def test_only_the_parts_that_are_read_are_loaded() -> None:
    from noetl.blobs import manifests

    class Counting(MemoryBlobs):
        def __init__(self) -> None:
            super().__init__()
            self.read: list[str] = []

        async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
            self.read.append(ref)
            return await super().get(ref, start, length)

    blobs = Counting()
    listed = [{"n": number, "x": "x" * 1000} for number in range(2000)]
    manifest = await manifests.put_list(blobs, "noetl://list", listed, 0)
    assert len(manifest["parts"]) > 5
    made = StoredResults(blobs, SteadyClock())
    seen = await made.seen("fetch", {"results": manifest, "stats": {}}, {"results": {3: {"n": True}, 1999: True}})
    assert (seen["results"][3]["n"], seen["results"][1999]["n"]) == (3, 1999)
    assert blobs.read == ["noetl://list/part/0", manifest["parts"][-1]["ref"]]
    assert await made.items(manifest, 3, 3) == listed[3:6]
    assert len(blobs.read) == 2
    assert await made.items(manifest, 500, 3) == listed[500:503]
    await blobs.put("noetl://list/part/0", b"[]", {})
    made = StoredResults(blobs, SteadyClock())  # one that has not read it yet
    with pytest.raises(BadReference, match="damaged"):
        await made.items(manifest, 0, 1)
    assert (await made.items(manifest, 1999, 1))[0]["n"] == 1999


# What is large and what fails


async def test_everything_else_goes_on_while_a_very_large_result_is_written() -> None:
    value = {"rows": [{"id": number, "text": "x" * 100} for number in range(300_000)]}
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    outcome, ref = await results().keep(task(), ok(value), WHERE)
    ticking.cancel()
    assert outcome.result is value
    assert ref is not None
    assert ref["meta"]["bytes"] == len(msgspec.json.encode(value))
    assert ticks > 20


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"a": list(range(30_000)), 'b"': {"c": [[1] * 600] * 50}},
        ["é"] * 25_000,
        {1: "x" * 3_000_000},
        [[]] * 501,
    ],
)
async def test_what_is_written_in_pieces_is_what_is_written_at_once(value: Any) -> None:
    assert await pieces.encoded(value) == msgspec.json.encode(value)


async def test_the_large_body_of_an_error_is_put_away_too() -> None:
    workflow = """
- step: make
  tool: {kind: http, url: "{{ workload.url }}"}
  next:
    spec: {mode: exclusive}
    arcs: [{step: read, when: "{{ event.name == 'step.failed' and make.n == 7 }}"}]
- step: read
  tool: {kind: noop, result: "{{ make.rows | length }}"}
"""
    failure = Outcome("error", LARGE, TaskError("server_error", "no", code="HTTP_500"))
    outcome, ref = await results().keep(task(), failure, WHERE)
    assert outcome is failure
    assert ref is not None
    assert ref["kind"] == "result_ref"

    class Failing:
        def runner(self, kind: str) -> Any:
            async def run(_fields: Any, _context: Any) -> Outcome:
                return failure

            return run if kind == "http" else kinds().runner(kind)

    async with system(0) as made:
        made.shared = replace(made.shared, tools=Failing())
        made.worker()
        execution = await made.start(workflow, "workload: {url: 'http://127.0.0.1:1'}\n")
        row = await made.ended(execution)
        assert (row["status"], row["result"]) == ("completed", 1000), row
        (broken,) = await made.events(execution, "step.failed")
        assert broken.payload["result"]["kind"] == "result_ref"


async def test_the_body_of_an_error_that_cannot_be_kept_does_not_hide_the_error() -> None:
    failure = Outcome("error", LARGE, TaskError("server_error", "no"))
    outcome, ref = await results().keep(task(limits={"max_result_bytes": 10}), failure, WHERE)
    assert ref is None
    assert outcome.error == failure.error
    assert outcome.result is None


async def test_an_expired_reference_is_an_error_that_says_when() -> None:
    made = results()
    _, ref = await made.keep(task(result={"store": {"kind": "db", "ttl": 60}}), ok(LARGE), WHERE)
    assert ref is not None
    assert await made.load(ref) == LARGE
    with pytest.raises(BadReference, match="expired"):
        await made.load({**ref, "expires_at": SteadyClock().now() - 1_000})  # two clocks differ by a rounding
