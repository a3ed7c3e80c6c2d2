"""Cursor loops on a real database: rows recorded before the claim, run once."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from noetl.dsl.tree.playbook import Loop, Value
from noetl.model.messages import Report, Signal
from noetl.model.outcome import ok
from noetl.ports.work import Answer, Reply
from noetl.worker.steps.cursor import row_keys, rows_of
from tests.polling import PollingPlane, report_wait
from tests.unit.worker.system import system

pytestmark = pytest.mark.asyncio

CLAIM = """
    UPDATE jobs SET taken = true
    WHERE id IN (SELECT id FROM jobs WHERE NOT taken ORDER BY id LIMIT {{ workload.most }})
    RETURNING id, name
    """
LOOP = f"""
    - step: all
      loop:
        cursor: {{kind: duckdb, key: id, database: "{{{{ workload.db }}}}", claim: "{" ".join(CLAIM.split())}"}}
        iterator: order
        spec: SPEC
      tool: TOOL
    """


def database(folder: Path, names: list[str]) -> str:
    path = str(folder / "jobs.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE jobs (id INT, name TEXT, taken BOOLEAN)")
        for number, name in enumerate(names):
            connection.execute("INSERT INTO jobs VALUES (?, ?, false)", [number + 10, name])
    return path


def taken(path: str) -> int:
    """Count the rows that are marked, as another connection sees it."""
    with duckdb.connect(path) as connection:
        found: int = connection.execute("SELECT count(*) FROM jobs WHERE taken").fetchall()[0][0]
        return found


def loop(tool: str, spec: str = "{mode: sequential}") -> str:
    return LOOP.replace("TOOL", tool).replace("SPEC", spec)


@pytest.mark.parametrize(("most", "spec"), [(1, "{mode: sequential}"), (3, "{mode: parallel, max_in_flight: 2}")])
async def test_every_row_is_run_once(tmp_path: Path, most: int, spec: str) -> None:
    async with system() as run:
        tool = '{kind: noop, result: "{{ order.name }} {{ iter.index }} {{ _idempotency_key }}"}'
        execution = await run.start(loop(tool, spec), db=database(tmp_path, ["a", "b", "c", "d"]), most=most)
        row = await run.ended(execution)
        assert row["status"] == "completed"
        assert row["result"]["stats"] == {"total": 4, "succeeded": 4, "failed": 0, "skipped": 0}
        expected = [f"{name} {at} {execution}:all:{at + 10}:all_task" for at, name in enumerate("abcd")]
        assert sorted(row["result"]["results"]) == expected


@pytest.mark.parametrize(("most", "sizes"), [(3, [3, 3, 1]), (1, [3, 3, 1]), (2, [2, 2, 2, 1]), (7, [3, 3, 1])])
async def test_rows_come_in_frames(tmp_path: Path, most: int, sizes: list[int]) -> None:
    async with system() as run:
        spec = "{mode: cursor, max_in_flight: 2, frame: {max_rows: 3, process: frame}}"
        tool = "{kind: noop, result: \"{{ iter.order | map(attribute='name') | join('') }}\"}"
        path = database(tmp_path, list("abcdefg"))
        execution = await run.start(loop(tool, spec), db=path, most=most)
        row = await run.ended(execution)
        assert row["status"] == "completed"
        assert [len(names) for names in row["result"]["results"]] == sizes
        assert "".join(row["result"]["results"]) == "abcdefg"
        assert taken(path) == 7
        pieces = await run.events(execution, "loop.iteration.scheduled")
        assert {event.payload["count"] for event in pieces} == {1}


async def test_a_frame_is_one_piece_of_work_whose_rows_run_at_once(tmp_path: Path) -> None:
    async with system() as run:
        spec = "{mode: cursor, max_in_flight: 1, frame: {max_rows: 4, row_concurrency: 3}}"
        # Each row of the first frame but the last waits for a signal, so three are in flight at once.
        tool = (
            '[{name: hear, kind: wait, signal: "{{ order.name }}"}, {name: say, kind: noop, result: "{{ order.id }}"}]'
        )
        execution = await run.start(loop(tool, spec), db=database(tmp_path, ["a", "b", "c"]), most=4)
        for number, name in enumerate("cab"):
            await run.tell(execution, Signal(f"s{number}", name, name))
        row = await run.ended(execution)
        assert [result["data"] for result in row["result"]["results"]] == [10, 11, 12]
        [first, *_] = await run.events(execution, "loop.iteration.scheduled")
        assert (first.payload["count"], first.payload["width"]) == (3, 3)


async def test_a_frame_is_full_after_some_bytes_or_seconds(tmp_path: Path) -> None:
    for limit in ("max_bytes: 1", "max_seconds: 0"):
        async with system() as run:
            folder = tmp_path / limit.partition(":")[0]
            folder.mkdir()
            tool = '{kind: noop, result: "{{ order | length }}"}'
            spec = f"{{mode: cursor, max_in_flight: 1, frame: {{max_rows: 3, process: frame, {limit}}}}}"
            row = await run.run(loop(tool, spec), db=database(folder, ["a", "b"]), most=1)
            assert row["result"]["results"] == [1, 1]


async def test_the_rows_of_a_frame_that_was_lost_are_claimed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are recorded before the lease is lost, and come again with the next claim."""
    path = database(tmp_path, ["a", "b", "c"])
    async with system() as run:
        lost, send = list[str](), run.control.report

        class Losing(PollingPlane):
            async def report_wait(self, execution_id: str, report: Report, want: int) -> Answer:
                answer = await report_wait(send, execution_id, report, want)
                if report.rows and report.rows[0].key == "11" and not lost:
                    lost.append(report.message_id)
                    await run.control.take_over(execution_id)
                return answer

        monkeypatch.setattr(run.control, "report", Losing().report)
        spec = "{mode: cursor, max_in_flight: 1, frame: {max_rows: 3, process: frame}}"
        tool = "{kind: noop, result: \"{{ iter.order | map(attribute='name') | join('') }}\"}"
        row = await run.ended(await run.start(loop(tool, spec), db=path, most=1))
        assert lost
        assert "".join(row["result"]["results"]) == "abc"
        assert taken(path) == 3


async def test_without_a_key_a_row_is_its_own(tmp_path: Path) -> None:
    async with system() as run:
        tool = '{kind: noop, result: "{{ _idempotency_key }}"}'
        execution = await run.start(loop(tool).replace("key: id, ", ""), db=database(tmp_path, ["a"]), most=1)
        row = await run.ended(execution)
        assert row["result"]["results"] == [f'{execution}:all:{{"id":10,"name":"a"}}:all_task']


async def test_no_row_is_no_item(tmp_path: Path) -> None:
    async with system() as run:
        row = await run.run(loop("{kind: noop}"), db=database(tmp_path, []), most=1)
        assert row["result"] == {"results": [], "stats": {"total": 0, "succeeded": 0, "failed": 0, "skipped": 0}}


async def test_a_row_that_fails_ends_the_loop(tmp_path: Path) -> None:
    async with system() as run:
        tool = '{kind: python, code: "result = 1 / len(name)", input: {name: "{{ order.name }}"}}'
        row = await run.run(loop(tool), db=database(tmp_path, ["a", "", "c"]), most=1)
        assert row["status"] == "failed"
        assert "item 1 of the loop failed" in row["error"]["message"]
        with duckdb.connect(str(tmp_path / "jobs.duckdb")) as connection:
            assert connection.execute("SELECT count(*) FROM jobs WHERE taken").fetchall() == [(2,)]


async def test_best_effort_goes_on(tmp_path: Path) -> None:
    async with system() as run:
        tool = '{kind: python, code: "result = 1 / len(name)", input: {name: "{{ order.name }}"}}'
        spec = "{policy: {failure: {mode: best_effort}}}"
        row = await run.run(loop(tool, spec), db=database(tmp_path, ["a", "", "c"]), most=2)
        assert row["status"] == "partial"
        assert row["result"]["results"] == [1.0, None, 1.0]


async def test_a_claim_that_fails(tmp_path: Path) -> None:
    async with system() as run:
        row = await run.run(loop("{kind: noop}"), db=str(tmp_path / "none" / "x.duckdb"), most=1)
        assert row["status"] == "failed"
        assert row["error"]["message"]


async def test_a_claim_that_marks_nothing_does_not_run_for_ever() -> None:
    async with system() as run:
        row = await run.run(
            """
            - step: all
              loop: {cursor: {kind: duckdb, claim: "SELECT 1 AS id", key: id}, iterator: order}
              tool: {kind: noop}
            """
        )
        assert row["status"] == "failed"
        assert "it must mark what it claims" in row["error"]["message"]


@pytest.mark.parametrize("spec", ["{mode: sequential}", "{mode: parallel, max_in_flight: 2}"])
async def test_a_row_waits_without_a_worker(tmp_path: Path, spec: str) -> None:
    async with system() as run:
        tool = '[{name: hear, kind: wait, signal: "{{ order.name }}"}, {name: say, kind: noop, result: "{{ [_prev, order.name, iter.index] }}"}]'
        execution = await run.start(loop(tool, spec), db=database(tmp_path, ["a", "b"]), most=1)
        await run.tell(execution, Signal("s1", "b", 2))
        await run.tell(execution, Signal("s2", "a", 1))
        row = await run.ended(execution)
        assert [result["data"] for result in row["result"]["results"]] == [[1, "a", 0], [2, "b", 1]]


async def test_a_claim_takes_effect_only_after_its_rows_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database(tmp_path, ["a", "b"])
    async with system() as run:
        report, seen = run.control.report, list[tuple[int, int]]()

        def looking(execution_id: str, message: Report, want: int, reply: Reply) -> None:
            before = taken(path) if message.rows else 0

            def replied(answer: Answer | Exception) -> bool:
                if message.rows:
                    seen.append((before, taken(path)))
                return reply(answer)

            report(execution_id, message, want, replied)

        monkeypatch.setattr(run.control, "report", looking)
        row = await run.run(loop("{kind: noop}"), db=path, most=1)
        assert row["result"]["stats"]["total"] == 2
        assert seen == [(0, 0), (1, 1)]
        assert taken(path) == 2


async def test_a_claim_whose_lease_was_lost_takes_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path, ["a"])
    async with system() as run:
        lost, send = list[str](), run.control.report

        class Losing(PollingPlane):
            async def report_wait(self, execution_id: str, report: Report, want: int) -> Answer:
                answer = await report_wait(send, execution_id, report, want)
                if report.rows and not lost:
                    lost.append(report.message_id)
                    await run.control.take_over(execution_id)
                return answer

        monkeypatch.setattr(run.control, "report", Losing().report)
        execution = await run.start(loop("{kind: noop, result: 1}"), db=path, most=1)
        row = await run.ended(execution)
        assert lost
        assert row["result"] == {"results": [1], "stats": {"total": 1, "succeeded": 1, "failed": 0, "skipped": 0}}
        recorded = await run.events(execution, "loop.claim.recorded")
        assert [(event.payload["keys"], event.payload.get("known")) for event in recorded] == [
            (["10"], None),
            ([], ["10"]),
        ]
        assert taken(path) == 1


async def test_rows_that_are_lists_have_the_columns_of_their_claim() -> None:
    plan = Loop(None, "row", {"kind": Value("postgres"), "key": Value(["id", "n"])})
    assert row_keys(plan, ok({"columns": ["n", "id"], "rows": [[1, 2]]})) == (["n", "id"], ["id", "n"])
    assert row_keys(Loop(None, "row", {}), ok([[1, 2]])) == ([], [])


async def test_what_a_claim_gives() -> None:
    assert rows_of(ok({"rows": [{"id": 1}]})) == [{"id": 1}]
    assert rows_of(ok(None)) == []
    refused = rows_of(ok({"rows": 5}))
    assert not isinstance(refused, list)
    assert refused.status == "error"
