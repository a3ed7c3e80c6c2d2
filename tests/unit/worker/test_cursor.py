"""Loops over rows that are claimed from a real database: each row once, numbered as it came, until none is left."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from noetl.dsl.playbook import Loop, Value
from noetl.model.outcome import ok
from noetl.worker.cursor import fresh_rows, rows_of
from tests.unit.worker.system import system

pytestmark = pytest.mark.asyncio

CLAIM = """
    ATTACH '{{ workload.db }}' AS q;
    UPDATE q.jobs SET taken = true
    WHERE id IN (SELECT id FROM q.jobs WHERE NOT taken ORDER BY id LIMIT {{ workload.most }})
    RETURNING id, name
    """
LOOP = f"""
    - step: all
      loop:
        cursor: {{kind: duckdb, key: id, claim: "{" ".join(CLAIM.split())}"}}
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


async def test_a_row_cannot_wait_without_a_worker(tmp_path: Path) -> None:
    async with system() as run:
        row = await run.run(loop("{kind: sleep, seconds: 60}"), db=database(tmp_path, ["a"]), most=1)
        assert row["status"] == "failed"
        assert "a row of a cursor cannot wait without a worker" in row["error"]["message"]


async def test_a_row_that_comes_again_is_known_by_its_key() -> None:
    cursor = {"key": Value("id")}
    over = Loop(None, "order", cursor)
    seen: set[str] = set()
    assert fresh_rows(over, [{"id": 1}, {"id": 2}], seen, 5) == [(5, {"id": 1}, "1"), (6, {"id": 2}, "2")]
    assert fresh_rows(over, [{"id": 2}, {"id": 3}], seen, 7) == [(7, {"id": 3}, "3")]


async def test_what_a_claim_gives() -> None:
    assert rows_of(ok({"rows": [{"id": 1}]})) == [{"id": 1}]
    assert rows_of(ok(None)) == []
    refused = rows_of(ok({"rows": 5}))
    assert not isinstance(refused, list)
    assert refused.status == "error"
