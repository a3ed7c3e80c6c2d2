"""Table writes without SQL, PostgreSQL and DuckDB: modes, hostile names, values."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from tests.tools.attempts import Attempts, Tried

pytestmark = pytest.mark.asyncio
EVIL = [
    "'; DROP TABLE t; --", '"; DROP TABLE t; --', "$$; DROP TABLE t; $$", "%s", "%(a)s", "100%", "{{ 1 }}", "?", "$1", "\\'; --",
    "é\n\t", "NULL", "a.b",
]  # fmt: skip


class Sink:
    """A database with one way to write and one to look."""

    def __init__(self, kind: str, attempts: Attempts) -> None:
        self.kind = kind
        self._attempts = attempts
        self._where = {"database": "sink.duckdb"} if kind == "duckdb" else {}

    async def run(self, own: Any = None, **fields: Any) -> Tried:
        return await self._attempts.run(self.kind, {**self._where, **fields}, input=own, auth="pg")

    async def sql(self, *texts: str) -> list[dict[str, Any]]:
        tried = await self.run(commands=list(texts))
        assert tried.outcome.status == "ok", tried.error
        rows: list[dict[str, Any]] = tried.result["rows"]
        return rows

    async def write(self, mode: str, values: Any, **more: Any) -> Any:
        tried = await self.run(table="t", mode=mode, values=values, **more)
        assert tried.outcome.status == "ok", tried.error
        return tried.result

    async def there(self) -> list[tuple[Any, ...]]:
        return [(row["id"], row["name"]) for row in await self.sql("SELECT id, name FROM t ORDER BY id, name")]


@pytest_asyncio.fixture(params=["postgres", "duckdb"])
async def sink(request: pytest.FixtureRequest, tmp_path: Path, address: str) -> AsyncIterator[Sink]:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    attempts = Attempts({"pg": {"dsn": address}}, str(tmp_path))
    made = Sink(request.param, attempts)
    await made.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    yield made
    await attempts.close()


async def test_upsert_writes_the_same_row_again(sink: Sink) -> None:
    for name in ("a", "b", "b"):
        await sink.write("upsert", [{"id": 1, "name": name}, {"id": 2, "name": "x"}], key="id")
    assert await sink.there() == [(1, "b"), (2, "x")]
    await sink.write("upsert", {"id": 1}, key=["id"])
    assert await sink.there() == [(1, "b"), (2, "x")]


async def test_insert_and_append_add_rows_and_refuse_what_is_there(sink: Sink) -> None:
    assert (await sink.write("insert", {"id": 1, "name": "a"}))["row_count"] == 1
    await sink.write("append", [{"id": 2, "name": "b"}, {"id": 3, "name": "c"}])
    tried = await sink.run(table="t", mode="insert", values=[{"id": 9, "name": "new"}, {"id": 1, "name": "again"}])
    assert (tried.error.kind, tried.error.retryable) == ("db_constraint", False)
    assert await sink.there() == [(1, "a"), (2, "b"), (3, "c")]  # all rows or none


async def test_overwrite_replaces_all_rows_or_leaves_them(sink: Sink) -> None:
    await sink.write("insert", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    for _ in range(2):
        await sink.write("overwrite", {"id": 7, "name": "z"})
    assert await sink.there() == [(7, "z")]
    assert (await sink.run(table="t", mode="overwrite", values=[{"id": 8}, {"id": 8}])).outcome.status == "error"
    assert await sink.there() == [(7, "z")]


async def test_the_idempotency_key_is_the_key_where_none_is_named(sink: Sink) -> None:
    await sink.sql("CREATE TABLE k (idempotency_key text PRIMARY KEY, n int)")
    for n in (1, 2):
        assert (await sink.run(table="k", mode="upsert", own={"n": n})).outcome.status == "ok"
    [row] = await sink.sql("SELECT idempotency_key, n FROM k")
    assert row["n"] == 2
    assert ":" in row["idempotency_key"]
    await sink.run(table="k", mode="upsert", values=[{"n": 3}, {"n": 4}])
    assert [row["n"] for row in await sink.sql("SELECT n FROM k ORDER BY n")] == [2, 3, 4]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
@pytest.mark.parametrize("evil", EVIL)
async def test_a_value_is_never_code(sink: Sink, evil: str, mode: str) -> None:
    await sink.write(mode, {"id": 1, "name": evil}, key="id" if mode == "upsert" else None)
    assert await sink.there() == [(1, evil)]


@pytest.mark.parametrize("evil", [name for name in EVIL if "." not in name])
async def test_a_name_is_never_code(sink: Sink, evil: str) -> None:
    quoted = '"' + evil.replace('"', '""') + '"'
    await sink.sql(f"CREATE TABLE {quoted} (id int PRIMARY KEY, {quoted} text)")
    for value in ("one", "two"):
        tried = await sink.run(table=evil, mode="upsert", key="id", values={"id": 1, evil: value})
        assert tried.outcome.status == "ok", tried.error
    tried = await sink.run(table=evil, mode="upsert", key=evil, values={evil: "two"})
    assert (
        "constraint" in tried.error.message.lower()
    )  # it has none of that name; the name reached the database as a name
    assert [row[evil] for row in await sink.sql(f"SELECT {quoted} FROM {quoted}")] == ["two"]
    assert await sink.there() == []


@pytest.mark.parametrize("evil", ['t" (id) VALUES (1); DROP TABLE t; --', "t; DROP TABLE t", "public.t; --", "t\x00"])
async def test_a_table_that_is_not_there_is_an_error_and_nothing_else(sink: Sink, evil: str) -> None:
    tried = await sink.run(table=evil, mode="insert", values={"id": 1})
    assert tried.outcome.status == "error"
    assert not tried.error.retryable
    assert await sink.there() == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mode": "insert", "values": {}}, "nothing to write"),
        ({"mode": "insert"}, "nothing to write"),
        ({"mode": "upsert", "key": "id", "values": {"name": "a"}}, "no value for the key column `id`"),
    ],
)
async def test_a_row_that_cannot_be_written_is_told_of(sink: Sink, fields: dict[str, Any], words: str) -> None:
    tried = await sink.run(table="t", **fields)
    assert tried.error.kind == "schema"
    assert words in tried.error.message


async def test_fan_out_does_not_duplicate_results(sink: Sink) -> None:
    """Two sinks of one result each write it once, also when both are run again."""
    await sink.sql("CREATE TABLE other (id int PRIMARY KEY, name text)")
    for _ in range(2):
        for table in ("t", "other"):
            await sink.run(table=table, mode="upsert", key="id", values={"id": 1, "name": "a"})
    assert await sink.there() == [(1, "a")]
    assert len(await sink.sql("SELECT * FROM other")) == 1
