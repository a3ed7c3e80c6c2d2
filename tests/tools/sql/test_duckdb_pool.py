"""In-memory instances of DuckDB are used again, and carry nothing between tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import pytest_asyncio

from noetl.tools.sql.duckdb_pool import MOST_IDLE, DuckdbPool, Instance
from noetl.worker.processes.sandbox import problem
from noetl.worker.tool_context import Shared
from tests.tools.attempts import Attempts

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def pool(attempts: Attempts) -> AsyncIterator[DuckdbPool]:
    """The pool of the worker that `attempts` is."""

    await attempts.run("duckdb", {"query": "SELECT 1 AS n"})
    yield await attempts.shared.get("duckdb", _none)


async def _none() -> DuckdbPool:
    raise AssertionError("there is a pool")


async def instance_after(attempts: Attempts, pool: DuckdbPool, *commands: str) -> tuple[Any, Any]:
    """Return the idle instance before and after a task on it; None if it was closed."""
    [before] = pool.idle
    await attempts.run("duckdb", {"commands": list(commands)})
    return before, pool.idle[-1] if pool.idle else None


@pytest.mark.parametrize(
    "commands",
    [
        ["SELECT 1"],
        ["CREATE TABLE t AS SELECT 1 AS a", "INSERT INTO t VALUES (2)", "SELECT * FROM t"],
        ["CREATE TEMP TABLE t (a INT)"],
        ["CREATE VIEW v AS SELECT 1 AS a", "FROM v"],
    ],
)
async def test_plain_tasks_use_one_instance(attempts: Attempts, pool: DuckdbPool, commands: list[str]) -> None:
    before, after = await instance_after(attempts, pool, *commands)
    assert after is before


@pytest.mark.parametrize(
    "leaves",
    [
        "CREATE TABLE t AS SELECT 1 AS a",
        "CREATE TEMP TABLE t AS SELECT 1 AS a",
        "CREATE VIEW t AS SELECT 1 AS a",
        "CREATE MACRO t() AS TABLE SELECT 1",
        "ATTACH ':memory:' AS other; CREATE TABLE other.t (a INT); USE other",
        "BEGIN; CREATE TABLE t (a INT)",
    ],
)
async def test_no_task_sees_what_another_left(attempts: Attempts, leaves: str) -> None:
    assert (await attempts.run("duckdb", {"command": leaves})).result
    found = await attempts.run(
        "duckdb", {"query": "SELECT database_name AS d FROM duckdb_databases() WHERE NOT internal"}
    )
    assert found.result["rows"] == [{"d": "memory"}]
    for query in ("FROM t", "FROM t()"):
        assert (await attempts.run("duckdb", {"query": query})).error.kind == "not_found"


@pytest.mark.parametrize(
    ("leaves", "query", "value"),
    [
        ("SET default_order = 'DESC'", "SELECT current_setting('default_order')", "ASCENDING"),
        ("SET GLOBAL default_order = 'DESC'", "SELECT current_setting('default_order')", "ASCENDING"),
        ("PRAGMA default_order = 'DESC'", "SELECT current_setting('default_order')", "ASCENDING"),
        ("SET VARIABLE x = 7", "SELECT getvariable('x')", None),
        ("CREATE SECRET s (TYPE http)", "SELECT count(*) FROM duckdb_secrets()", 0),
        ("CALL enable_logging()", "SELECT current_setting('enable_logging')", 0),
        ("FROM enable_logging()", "SELECT current_setting('enable_logging')", 0),
        ("FROM query('FROM enable_' || 'logging()')", "SELECT current_setting('enable_logging')", 0),
        ("SELECT 1; SET default_order = 'DESC'", "SELECT current_setting('default_order')", "ASCENDING"),
        ("/* ; */ SET GLOBAL default_order = 'DESC'", "SELECT current_setting('default_order')", "ASCENDING"),
    ],
)
async def test_settings_end_with_the_task(
    attempts: Attempts, pool: DuckdbPool, leaves: str, query: str, value: Any
) -> None:
    """The instance that the next task gets has none of them."""
    await attempts.run("duckdb", {"command": leaves})
    for instance in pool.idle:
        with instance.root.cursor() as cursor:
            assert cursor.execute(query).fetchall() == [(value,)]


async def test_another_execution_has_another_instance(attempts: Attempts, pool: DuckdbPool) -> None:
    [first] = pool.idle
    await attempts.run("duckdb", {"query": "SELECT 1"}, execution_id="8")
    assert [one.execution_id for one in pool.idle] == ["7", "8"]
    await attempts.run("duckdb", {"query": "SELECT 1"})
    assert pool.idle[-1] is first


async def test_a_failed_task_leaves_no_instance(attempts: Attempts, pool: DuckdbPool) -> None:
    before, after = await instance_after(attempts, pool, "SELECT 'a'::INT")
    assert before is not None
    assert after is None


async def test_a_cancelled_task_leaves_no_instance(attempts: Attempts, pool: DuckdbPool) -> None:
    endless = asyncio.create_task(attempts.run("duckdb", {"query": "SELECT sum(range) FROM range(1000000000000000)"}))
    while pool.idle:
        await asyncio.sleep(0)
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    assert not pool.idle


async def test_tasks_at_once_have_an_instance_each(attempts: Attempts, pool: DuckdbPool) -> None:
    command = "CREATE TABLE t AS SELECT 1 AS a; SELECT count(*) AS n FROM t"
    found = await asyncio.gather(*(attempts.run("duckdb", {"command": command}) for _ in range(3 * MOST_IDLE)))
    assert [one.result["rows"] for one in found] == [[{"n": 1}]] * (3 * MOST_IDLE)
    assert 1 <= len(pool.idle) <= MOST_IDLE


async def test_a_changed_file_is_read_again(attempts: Attempts, tmp_path: Path) -> None:
    for n in (1, 2):
        await attempts.run("duckdb", {"command": f"COPY (SELECT {n} AS n) TO '{tmp_path}/a.parquet'"})
        found = await attempts.run("duckdb", {"query": f"FROM '{tmp_path}/a.parquet'"})
        assert found.result["rows"] == [{"n": n}]


async def test_idle_instances_are_closed_after_their_time(attempts: Attempts, pool: DuckdbPool) -> None:
    short = DuckdbPool(pool._connect, idle_s=0.01)
    attempts.shared = Shared()
    await attempts.shared.get("duckdb", lambda: asyncio.sleep(0, short))
    await attempts.run("duckdb", {"query": "SELECT 1"})
    while short.idle:
        await asyncio.sleep(0.001)
    assert (await attempts.run("duckdb", {"query": "SELECT 2 AS n"})).result["rows"] == [{"n": 2}]
    await short.close()


async def test_instances_close_with_the_worker(attempts: Attempts, pool: DuckdbPool) -> None:
    [instance] = pool.idle
    await attempts.shared.close()
    assert not pool.idle
    with pytest.raises(duckdb.Error):
        instance.root.execute("SELECT 1")


@pytest.fixture
def confined(tmp_path: Path) -> Attempts:
    hidden = tmp_path / "hidden"
    hidden.write_text("n\n1\n")
    return Attempts(sandbox="landlock", hidden=[str(hidden)], folder=str(tmp_path))


needs_landlock = pytest.mark.skipif(problem("landlock") is not None, reason="no Landlock here")


@needs_landlock
async def test_confined_tasks_use_one_instance_and_stay_confined(confined: Attempts, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    pool: DuckdbPool | None = None
    try:
        async with asyncio.timeout(30):
            while pool is None or not pool.idle:  # another process may change the folder of temporary files
                await asyncio.sleep(0.05)  # what is confined now may be used later
                await _read_and_refuse(confined, tmp_path)
                pool = await confined.shared.get("duckdb", _none)
            await _read_and_refuse(confined, tmp_path)
    finally:
        await confined.close()


async def _read_and_refuse(confined: Attempts, folder: Path) -> None:
    wrote = await confined.run("duckdb", {"command": f"COPY (SELECT 1) TO '{folder}/b.csv'"})
    assert wrote.error is not None
    refused = await confined.run("duckdb", {"query": f"FROM '{folder}/hidden'"})
    assert refused.error is not None
    found = await confined.run("duckdb", {"query": f"FROM '{folder}/a.csv'"})
    assert found.result["rows"] == [{"n": 1}]


@needs_landlock
async def test_a_confined_task_sees_a_file_that_came_later(confined: Attempts, tmp_path: Path) -> None:
    try:
        for n in range(5):
            (tmp_path / f"{n}.csv").write_text(f"n\n{n}\n")
            found = await confined.run("duckdb", {"query": f"FROM '{tmp_path}/{n}.csv'"})
            assert found.result["rows"] == [{"n": n}]
    finally:
        await confined.close()


@needs_landlock
async def test_no_confined_task_finds_files_of_another(confined: Attempts) -> None:
    instance = None
    try:
        async with asyncio.timeout(30):
            while instance is None:  # none is used again if another process has changed the folder of temporary files
                instance = await _used_again(confined)
        assert not list(Path(instance.thread.folder).iterdir())
    finally:
        await confined.close()
    assert not Path(instance.thread.folder).exists()


async def _used_again(confined: Attempts) -> Instance | None:
    """Return an instance that two tasks used, if one did; the first left a file."""
    await asyncio.sleep(0.05)
    await confined.run("duckdb", {"query": "SELECT 1"})
    pool: DuckdbPool = await confined.shared.get("duckdb", _none)
    before = pool.idle
    for instance in before:
        Path(instance.thread.folder, "left").touch()
    await confined.run("duckdb", {"query": "SELECT 1"})
    return next((one for one in pool.idle if one in before), None)
