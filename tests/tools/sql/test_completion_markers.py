"""`transactional`: writes and completion marker are one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
import pytest_asyncio

from noetl.clock import SteadyClock
from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.run_info import RunInfo
from noetl.model.outcome import Outcome
from noetl.ports import Blobs, Children, ControlPlane
from noetl.ports.work import run_tool
from noetl.tools import kinds
from noetl.worker.tool_context import DetachedRun, TaskContext, WorkerResources

pytestmark = pytest.mark.asyncio

ADD = "UPDATE counter SET n = n + 1 RETURNING n"


class Sink:
    """A table with a counter, and a fresh worker that writes to it."""

    def __init__(self, address: str, kind: str = "postgres", **always: Any) -> None:
        self.address, self.kind, self.always = address, kind, always
        self.shared = self._equipment()
        self.lines: list[str] = []

    def _equipment(self) -> WorkerResources:
        tools = kinds()

        async def credential(name: str) -> Mapping[str, Any]:
            return {"main": {"dsn": self.address}}[name]

        nothing = (cast(Children, None), cast(Blobs, None))
        return WorkerResources(
            cast(ControlPlane, None), tools, tools, SteadyClock(), *nothing, lambda: None, credential
        )

    async def run(self, key: str = "7:s:sql", own: Mapping[str, Any] | None = None, **fields: Any) -> Outcome:
        given = {"transactional": True, **self.always, **fields}
        task = RunTask("sql", self.kind, given, own or {}, own or {}, 1, key, "main")
        runner = self.shared.tools.runner(self.kind)
        assert runner is not None
        context = TaskContext(DetachedRun(self.shared, RunInfo("7", "s")), task)
        outcome = await run_tool(runner, given, context)
        logged = context.lines.records() if context.lines is not None else []
        self.lines += [line[2] for record in logged for line in record.payload["lines"]]
        return outcome

    async def counted(self) -> Any:
        found = await self.run(query="SELECT n FROM counter", transactional=False)
        return found.result["rows"][0]["n"]

    async def restarted(self) -> None:
        await self.shared.shared.close()
        self.shared = self._equipment()


@pytest_asyncio.fixture(params=["postgres", "duckdb"])
async def sink(request: pytest.FixtureRequest, tmp_path: Path, address: str) -> AsyncIterator[Sink]:
    if request.param == "duckdb":
        made = Sink("", "duckdb", database=str(tmp_path / "sink.duckdb"))
    else:
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
            await connection.execute(
                "DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP SCHEMA IF EXISTS ops CASCADE"
            )
        made = Sink(address)
    await made.run(
        commands=["CREATE TABLE counter (n int)", "INSERT INTO counter VALUES (0)", "CREATE SCHEMA ops"],
        transactional=False,
    )
    yield made
    await made.shared.shared.close()


async def test_a_repeated_run_writes_nothing_and_gives_the_recorded_result(sink: Sink) -> None:
    first = await sink.run(command=ADD)
    assert first.error is None, first.error
    assert first.result["rows"] == [{"n": 1}]
    await sink.restarted()
    again = await sink.run(command=ADD)
    assert again == first
    assert await sink.counted() == 1
    assert "without writing" in sink.lines[-1]


async def test_other_work_has_its_own_marker(sink: Sink) -> None:
    for index in range(3):
        await sink.run(f"7:s:{index}:sql", command=ADD)
    assert await sink.counted() == 3


async def test_a_failed_run_leaves_neither_writes_nor_a_marker(sink: Sink) -> None:
    assert (await sink.run(commands=[ADD, "SELECT * FROM nowhere"])).status == "error"
    assert await sink.counted() == 0
    assert (await sink.run(command=ADD)).result["rows"] == [{"n": 1}]


@pytest.mark.parametrize("mode", ["insert", "append"])
async def test_rows_for_a_table_are_added_once(sink: Sink, mode: str) -> None:
    for _ in range(2):
        outcome = await sink.run(table="counter", mode=mode, own={"n": 5})
        assert outcome.result["row_count"] == 1
    found = await sink.run(query="SELECT n FROM counter ORDER BY n", transactional=False)
    assert [row["n"] for row in found.result["rows"]] == [0, 5]


async def test_markers_stand_where_the_task_says(sink: Sink) -> None:
    await sink.run(command=ADD, marker_table="ops.marker")
    found = await sink.run(query="SELECT key FROM ops.marker", transactional=False)
    assert found.result["rows"] == [{"key": "7:s:sql"}]
    assert (await sink.run(command=ADD, marker_table="ops.marker")).result["rows"] == [{"n": 1}]


@pytest.mark.parametrize(
    "text", ["COMMIT", "begin", "rollback;", "END", "start transaction", "/* x */ Commit and chain"]
)
async def test_a_statement_that_would_part_writes_and_marker_is_refused(sink: Sink, text: str) -> None:
    outcome = await sink.run(commands=[ADD, text])
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.retryable) == ("TRANSACTION_CONTROL", False)
    assert await sink.counted() == 0


async def test_two_workers_with_the_same_work_take_effect_once(address: str, sink: Sink) -> None:
    if sink.kind != "postgres":
        pytest.skip("one process has a DuckDB file to itself")
    workers = [Sink(address) for _ in range(6)]
    slow = "WITH w AS (SELECT pg_sleep(0.05)) UPDATE counter SET n = n + (SELECT count(*) FROM w) RETURNING n"
    found = await asyncio.gather(*(worker.run(command=slow) for worker in workers))
    assert [one.result["rows"] for one in found if one.status == "ok"] == [[{"n": 1}]] * 6
    assert await sink.counted() == 1
    await asyncio.gather(*(worker.shared.shared.close() for worker in workers))


async def test_the_first_use_by_many_workers_at_once_never_fails(address: str, sink: Sink) -> None:
    workers = [Sink(address, sink.kind, **sink.always) for _ in range(12)]
    for round in range(3):
        table = f"marker_{round}"
        found = await asyncio.gather(
            *(one.run(f"7:s:{round}.{at}", query="SELECT 1 AS n", marker_table=table) for at, one in enumerate(workers))
        )
        assert [(one.status, one.error) for one in found] == [("ok", None)] * len(workers)
        counted = await sink.run(query=f"SELECT count(*) AS n FROM {table}", transactional=False)
        assert counted.result["rows"] == [{"n": len(workers)}]
    await asyncio.gather(*(worker.shared.shared.close() for worker in workers))


async def test_a_changed_search_path_does_not_lose_the_marker(sink: Sink) -> None:
    if sink.kind != "postgres":
        pytest.skip("PostgreSQL's own")
    for _ in range(2):
        outcome = await sink.run(commands=["SET LOCAL search_path = ops", "UPDATE public.counter SET n = n + 1"])
        assert outcome.status == "ok", outcome.error
    assert await sink.counted() == 1


async def test_a_table_of_markers_may_have_any_name(sink: Sink) -> None:
    for _ in range(2):
        outcome = await sink.run(command=ADD, marker_table='100%s "done"; --')
        assert outcome.error is None, outcome.error
    assert await sink.counted() == 1


async def test_a_table_of_markers_that_went_away_is_made_again(sink: Sink) -> None:
    await sink.run(command=ADD)
    await sink.run(command="DROP TABLE noetl_marker", transactional=False)
    assert (await sink.run(command=ADD)).result["rows"] == [{"n": 2}]


async def test_old_markers_are_cleared_out(sink: Sink) -> None:
    if sink.kind != "postgres":
        pytest.skip("PostgreSQL's own")
    await sink.run(command=ADD)
    await sink.run("8:s:sql", command=ADD)
    old = "UPDATE noetl_marker SET written_at = written_at - interval '31 days' WHERE key = '7:s:sql'"
    await sink.run(command=old, transactional=False)
    await sink.restarted()
    await sink.run("8:s:sql", command=ADD)
    found = await sink.run(query="SELECT key FROM noetl_marker", transactional=False)
    assert found.result["rows"] == [{"key": "8:s:sql"}]


async def test_who_may_not_make_the_table_is_told_so(address: str, sink: Sink) -> None:
    if sink.kind != "postgres":
        pytest.skip("DuckDB has no users")
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute(
            "DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC"
        )
        await connection.execute("GRANT USAGE ON SCHEMA public TO poor; GRANT ALL ON counter TO poor")
    poor = Sink(address.replace("noetl@", "poor@"))
    outcome = await poor.run(command=ADD)
    assert outcome.error is not None
    assert outcome.error.code == "PG_42501"
    assert "CREATE TABLE" in outcome.error.message
    assert await sink.counted() == 0
    await poor.shared.shared.close()
