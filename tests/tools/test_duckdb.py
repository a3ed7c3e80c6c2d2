"""Kind `duckdb`: statements, parameters, files, table writes, failures."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from noetl.model.refs import MOST_BYTES
from tests.tools.attempts import Attempts

pytestmark = pytest.mark.asyncio


async def test_a_query_gives_rows_as_plain_data(attempts: Attempts) -> None:
    sql = "SELECT 1 AS n, 'é' AS t, NULL AS z, DATE '2024-05-01' AS d, 1.50::DECIMAL(9,2) AS m, [1, 2] AS l, {'a': true} AS s"
    tried = await attempts.run("duckdb", {"query": sql})
    assert tried.result["rows"] == [
        {"n": 1, "t": "é", "z": None, "d": "2024-05-01", "m": 1.5, "l": [1, 2], "s": {"a": True}}
    ]
    assert tried.result["columns"] == ["n", "t", "z", "d", "m", "l", "s"]
    assert tried.result["row_count"] == 1


async def test_a_time_with_a_zone_is_plain_data(attempts: Attempts) -> None:
    query = "SET TimeZone = 'UTC'; SELECT TIMESTAMPTZ '2024-03-01 12:00:00+02' AS t"
    done = await attempts.run("duckdb", {"query": query})
    assert done.outcome.error is None, done.outcome.error
    assert done.outcome.result["rows"] == [{"t": "2024-03-01T10:00:00+00:00"}]


async def test_rows_beyond_the_limit_of_a_result_are_an_error(attempts: Attempts) -> None:
    tried = await attempts.run("duckdb", {"query": "SELECT repeat('x', 100000) AS t FROM range(1000000)"})
    assert (tried.error.kind, tried.error.code) == ("schema", "RESULT_TOO_LARGE")
    assert f"more than the {MOST_BYTES:,} bytes" in tried.error.message


async def test_more_rows_than_are_read_at_once_keep_their_order(attempts: Attempts) -> None:
    tried = await attempts.run("duckdb", {"query": "SELECT range AS n FROM range(1000)"})
    assert [row["n"] for row in tried.result["rows"]] == list(range(1000))


async def test_many_statements_give_each_its_answer(attempts: Attempts) -> None:
    text = "CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x;y'), (2, 'z'); SELECT count(*) AS n FROM t;"
    tried = await attempts.run("duckdb", {"command": text})
    assert tried.result["rows"] == [{"n": 2}]
    assert tried.result["command_1"]["row_count"] == 2
    assert tried.result["command_2"]["rows"] == [{"n": 2}]


@pytest.mark.parametrize(
    ("sql", "params", "rows"),
    [
        ("SELECT $a + $b AS n", {"a": 1, "b": 2, "unused": 3}, [{"n": 3}]),
        ("SELECT ? || ? AS t", ["a", "'; DROP TABLE x"], [{"t": "a'; DROP TABLE x"}]),
        ("SELECT 1 AS n", {"unused": 1}, [{"n": 1}]),
    ],
)
async def test_parameters_are_bound_by_the_driver(attempts: Attempts, sql: str, params: Any, rows: list[Any]) -> None:
    assert (await attempts.run("duckdb", {"query": sql, "params": params})).result["rows"] == rows


async def test_a_database_file_outlives_the_task(attempts: Attempts, tmp_path: Path) -> None:
    await attempts.run("duckdb", {"database": "d.duckdb", "command": "CREATE TABLE t AS SELECT 7 AS n"})
    assert (tmp_path / "d.duckdb").exists()
    tried = await attempts.run("duckdb", {"database": "d.duckdb", "query": "FROM t"})
    assert tried.result["rows"] == [{"n": 7}]


async def test_a_script_is_read_from_its_file(attempts: Attempts, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("-- a comment; with a semicolon\nSELECT 5 AS n;\n")
    assert (await attempts.run("duckdb", {"script": {"uri": "./q.sql"}})).result["rows"] == [{"n": 5}]
    assert (await attempts.run("duckdb", {"script": {"uri": "./missing.sql"}})).error.kind == "not_found"


async def test_rows_are_written_without_sql(attempts: Attempts) -> None:
    base = {"database": "d.duckdb", "table": "t"}
    await attempts.run("duckdb", {"database": "d.duckdb", "command": "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)"})
    await attempts.run("duckdb", {**base, "values": [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]})
    await attempts.run("duckdb", {**base, "mode": "upsert", "key": "id", "values": {"id": 2, "v": "B"}})
    await attempts.run("duckdb", {**base}, input={"id": 3, "v": "c"})
    query = {"database": "d.duckdb", "query": "SELECT v FROM t ORDER BY id"}
    assert [row["v"] for row in (await attempts.run("duckdb", query)).result["rows"]] == ["a", "B", "c"]
    failed = await attempts.run("duckdb", {**base, "values": [{"id": 9, "v": "x"}, {"id": 1, "v": "twice"}]})
    assert failed.error.kind == "db_constraint"
    assert len((await attempts.run("duckdb", query)).result["rows"]) == 3
    await attempts.run("duckdb", {**base, "mode": "overwrite", "values": {"id": 4, "v": "d"}})
    assert [row["v"] for row in (await attempts.run("duckdb", query)).result["rows"]] == ["d"]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [("SELEC 1", "parse"), ("SELECT x", "client_error"), ("FROM nowhere", "not_found"), ("SELECT 'a'::INT", "schema")],
)
async def test_a_failure_is_an_outcome_of_its_kind(attempts: Attempts, sql: str, kind: str) -> None:
    error = (await attempts.run("duckdb", {"query": sql})).error
    assert (error.kind, error.retryable) == (kind, False)
    assert error.code.startswith("DUCKDB_")


async def test_many_long_queries_keep_nobody_from_reading_and_all_are_interrupted(attempts: Attempts) -> None:
    """More queries than shared threads; those cancelled while queued end too."""
    endless = "SET threads = 1; SELECT count(*) FROM range(1000000000000000)"
    tasks = [asyncio.create_task(attempts.run("duckdb", {"command": endless})) for _ in range(12)]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(lambda: 7) == 7
    for task in tasks:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(one) for one in found} == {asyncio.CancelledError}
    left = [thread for thread in threading.enumerate() if thread.name == "noetl-task"]
    for thread in left:
        thread.join(10)  # it has told its end, and may not be gone yet; a query that goes on would keep it
    assert not any(thread.is_alive() for thread in left)


async def test_a_cancelled_query_is_interrupted(attempts: Attempts) -> None:
    endless = "SELECT count(*) FROM range(100000000000) a, range(1000) b"
    task = asyncio.create_task(attempts.run("duckdb", {"query": endless}))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_database_that_another_process_has_open_may_be_tried_again(attempts: Attempts, tmp_path: Path) -> None:
    path = tmp_path / "shared.duckdb"
    holder = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"open\n"
    task = {"database": str(path), "query": "SELECT 1 AS n"}
    tried = await attempts.run("duckdb", task)
    assert (tried.error.kind, tried.error.code) == ("db_connection", "DUCKDB_LOCKED")
    assert (tried.error.retryable, tried.error.sent) == (True, False)
    holder.stdin.close()
    await holder.wait()
    assert (await attempts.run("duckdb", task)).result["rows"] == [{"n": 1}]
