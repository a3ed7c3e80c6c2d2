"""Kind `transfer` between PostgreSQL, DuckDB, files and a web server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
import pytest_asyncio

from noetl.worker.http.clients import HttpClient
from tests.tools.attempts import Attempts
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
ROWS = [{"id": at, "name": f"n{at}", "amount": at / 4} for at in range(25)]
FILES = ["rows.csv", "rows.json", "rows.jsonl", "rows.parquet"]


@pytest_asyncio.fixture
async def attempts(tmp_path: Path, address: str) -> AsyncIterator[Attempts]:
    client = HttpClient()
    made = Attempts({"pg": {"dsn": address}}, str(tmp_path), http=client.get())
    yield made
    await made.close()
    await client.close()


@pytest.fixture
def table(address: str) -> Iterator[Any]:
    """An empty table in PostgreSQL, and a way to look into it."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT, amount NUMERIC)")
        yield lambda sql="SELECT * FROM t ORDER BY id": connection.execute(sql).fetchall()


def written(tmp_path: Path, rows: list[dict[str, Any]] = ROWS) -> str:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "in.jsonl"


def values(rows: list[dict[str, Any]] = ROWS) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows]


async def test_a_file_to_postgres_to_duckdb_to_a_file(attempts: Attempts, tmp_path: Path, table: Any) -> None:
    source: dict[str, Any] = {"kind": "file", "path": written(tmp_path)}
    pg = {"kind": "postgres", "auth": "pg", "table": "t"}
    first = await attempts.run("transfer", {"source": source, "target": pg, "chunk_size": 10})
    assert (first.result["row_count"], first.result["chunks"]) == (25, 3)
    assert first.result["bytes"] > 25 * 10
    assert [(i, n, float(a)) for i, n, a in table()] == values()
    duck = {"kind": "duckdb", "database": "d.duckdb", "table": "t"}
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE t (id INT, name TEXT, amount DOUBLE)")
    assert (await attempts.run("transfer", {"source": pg, "target": duck, "chunk_size": 7})).result["chunks"] == 4
    out = {"kind": "file", "path": "out/rows.jsonl"}
    source = {"kind": "duckdb", "database": "d.duckdb", "query": "SELECT * FROM t WHERE id < $n ORDER BY id",
              "params": {"n": 5}}  # fmt: skip
    assert (await attempts.run("transfer", {"source": source, "target": out})).result["row_count"] == 5
    assert [json.loads(line) for line in (tmp_path / "out/rows.jsonl").read_text().splitlines()] == ROWS[:5]


@pytest.mark.parametrize("path", FILES)
async def test_every_format_is_written_and_read(attempts: Attempts, tmp_path: Path, path: str) -> None:
    source = {"kind": "file", "path": written(tmp_path)}
    await attempts.run("transfer", {"source": source, "target": {"kind": "file", "path": path}, "mode": "overwrite"})
    for mode, count in (("append", 50), ("overwrite", 25)):
        there = {"kind": "file", "path": path}
        assert (await attempts.run("transfer", {"source": source, "target": there, "mode": mode})).result
        back = {"source": there, "target": {"kind": "file", "path": "back.jsonl"}, "mode": "overwrite"}
        assert (await attempts.run("transfer", back)).result["row_count"] == count
    assert [json.loads(line) for line in (tmp_path / "back.jsonl").read_text().splitlines()] == ROWS
    assert not [hidden for hidden in tmp_path.iterdir() if hidden.name.startswith(".")]


@pytest.mark.parametrize("kind", ["postgres", "duckdb"])
async def test_modes_of_a_table(attempts: Attempts, tmp_path: Path, table: Any, kind: str) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT, amount DOUBLE)")
    target = {"kind": kind, "auth": "pg", "table": "t", "key": "id"}
    target |= {"database": "d.duckdb"} if kind == "duckdb" else {}
    out = {"kind": "file", "path": "out.json"}

    async def load(rows: list[dict[str, Any]], mode: str) -> None:
        fields = {"source": {"kind": "file", "path": written(tmp_path, rows)}, "target": target, "mode": mode}
        assert (await attempts.run("transfer", {**fields, "chunk_size": 2})).outcome.status == "ok"

    async def there() -> list[dict[str, Any]]:
        source = {key: value for key, value in target.items() if key not in ("key", "table")}
        fields = {"source": {**source, "query": "SELECT id, name FROM t ORDER BY id"}, "target": out}
        assert (await attempts.run("transfer", {**fields, "mode": "overwrite"})).result
        found: list[dict[str, Any]] = json.loads((tmp_path / "out.json").read_text())
        return found

    await load([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": "it's %s"}], "insert")
    await load([{"id": 2, "name": "B"}, {"id": 4, "name": "d"}], "upsert")
    assert [row["name"] for row in await there()] == ["a", "B", "it's %s", "d"]
    await load([{"id": 9, "name": "z"}], "overwrite")
    assert await there() == [{"id": 9, "name": "z"}]


@pytest.mark.parametrize("kind", ["postgres", "duckdb"])
async def test_a_failed_transfer_leaves_the_table_as_it_was(
    attempts: Attempts, tmp_path: Path, table: Any, kind: str
) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT, amount DOUBLE)")
    target = {"kind": kind, "auth": "pg", "table": "t"} | ({"database": "d.duckdb"} if kind == "duckdb" else {})
    source = {"kind": "file", "path": written(tmp_path, [*ROWS, ROWS[0]])}
    tried = await attempts.run("transfer", {"source": source, "target": target, "chunk_size": 5})
    assert tried.error.kind == "db_constraint"
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert table() == []


async def test_rows_of_an_answer(attempts: Attempts, tmp_path: Path) -> None:
    web = Web()
    try:
        web.pages["/page"] = {"data": {"items": ROWS}}
        source = {"kind": "http", "url": f"{web.url}/page", "rows_path": "$.data.items"}
        columns = {"number": "id", "label": "name"}
        target = {"kind": "file", "path": "out.csv", "columns": columns}
        assert (await attempts.run("transfer", {"source": source, "target": target})).result["row_count"] == 25
        assert (tmp_path / "out.csv").read_text().splitlines()[:2] == ["number,label", "0,n0"]
        missing = {**source, "rows_path": None}
        assert "rows_path" in (await attempts.run("transfer", {"source": missing, "target": target})).error.message
        away = {**source, "url": f"{web.url}/status/503"}
        web.retry_after = "7"
        error = (await attempts.run("transfer", {"source": away, "target": target})).error
        assert (error.kind, error.retryable, error.code) == ("server_error", True, "HTTP_503")
        assert error.retry_after == 7
    finally:
        web.close()


@pytest.mark.parametrize(
    ("source", "target", "kind", "words"),
    [
        ({"kind": "s3", "path": "a.csv"}, {"kind": "file", "path": "b.csv"}, "client_error", "`s3`"),
        ({"kind": "file", "path": "none.csv"}, {"kind": "file", "path": "b.csv"}, "not_found", "none.csv"),
        ({"kind": "file"}, {"kind": "file", "path": "b.csv"}, "schema", "`path`"),
        ({"kind": "file", "path": "in.jsonl"}, {"kind": "file", "path": "b.xyz"}, "schema", "format"),
        ({"kind": "file", "path": "in.jsonl"}, {"kind": "postgres", "table": "t"}, "auth", "credential"),
        ({"kind": "file", "path": "in.jsonl"}, {"kind": "postgres", "auth": "no", "table": "t"}, "auth", "no"),
        (
            {"kind": "file", "path": "in.jsonl"},
            {"kind": "postgres", "auth": "pg", "table": "none"},
            "client_error",
            "none",
        ),
        (
            {"kind": "file", "path": "in.jsonl"},
            {"kind": "file", "path": "b.csv", "columns": ["id", "nope"]},
            "schema",
            "nope",
        ),
        (
            {"kind": "duckdb", "database": ":memory:", "query": "SELECT 1; SELECT 2"},
            {"kind": "file", "path": "b.csv"},
            "schema",
            "one statement",
        ),
    ],
)
async def test_what_cannot_be_moved_is_told(
    attempts: Attempts, tmp_path: Path, source: Any, target: Any, kind: str, words: str
) -> None:
    written(tmp_path)
    error = (await attempts.run("transfer", {"source": source, "target": target})).error
    assert error.kind == kind
    assert words in error.message
