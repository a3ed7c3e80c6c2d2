"""Rows that `transfer` sends with COPY are those that INSERT would have written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from tests.tools.attempts import Attempts, Tried

pytestmark = pytest.mark.asyncio
HOSTILE = ["\\N", "\\.", "a\tb", "a\nb", "a\r\nb", "\\", "", "NULL", "é漢😀", '"', "'", "\\x41", "%s", "a\\"]


@pytest_asyncio.fixture
async def attempts(tmp_path: Path, address: str) -> AsyncIterator[Attempts]:
    made = Attempts({"pg": {"dsn": address}}, str(tmp_path))
    yield made
    await made.close()


@pytest.fixture
def server(address: str) -> Iterator[psycopg.Connection[Any]]:
    """A database with a table that records how each statement writes to `t`."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE how (statement text)")
        yield connection


def watch(server: psycopg.Connection[Any]) -> None:
    server.execute("""CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO how VALUES (split_part(current_query(), ' ', 1)); RETURN NULL; END $$""")
    server.execute("CREATE TRIGGER noted AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note()")


def statements(server: psycopg.Connection[Any]) -> set[str]:
    return {row[0] for row in server.execute("SELECT statement FROM how")}


async def transfer(attempts: Attempts, tmp_path: Path, rows: list[dict[str, Any]], **more: Any) -> Tried:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    target = {"kind": "postgres", "auth": "pg", "table": "t", **more.pop("target", {})}
    fields = {"source": {"kind": "file", "path": "in.jsonl"}, "target": target, "chunk_size": 3, **more}
    return await attempts.run("transfer", fields)


@pytest.mark.parametrize("mode", ["append", "insert", "overwrite"])
async def test_rows_are_copied_in_one_statement(
    attempts: Attempts, tmp_path: Path, server: psycopg.Connection[Any], mode: str
) -> None:
    server.execute('CREATE TABLE t (id int, "a %s ""b" text, f float8, n numeric, b bool, j jsonb, d date)')
    watch(server)
    rows = [
        {"id": at, 'a %s "b': text, "f": at / 3, "n": at / 8, "b": at % 2 == 0, "j": {"k": text}, "d": "2024-05-01"}
        for at, text in enumerate(HOSTILE)
    ] + [{"id": None, 'a %s "b': None, "f": None, "n": None, "b": None, "j": None, "d": None}]
    assert (await transfer(attempts, tmp_path, rows, mode=mode)).result["row_count"] == len(rows)
    found = server.execute('SELECT id, "a %s ""b", f, n::float8, b, j, d::text FROM t ORDER BY id').fetchall()
    assert found == [tuple(row.values()) for row in rows]
    assert statements(server) == {"COPY"}
    assert server.execute("SELECT count(*) FROM how").fetchone() == (1,)


@pytest.mark.parametrize(
    ("type_", "values", "stored"),
    [
        ("int", [1.0, 2.0], ["1", "2"]),
        ("text", [True, "x", None], ["true", "x", None]),
        ("int[]", [[1, 2], []], ["{1,2}", "{}"]),
    ],
)
async def test_values_that_the_server_converts_are_inserted(
    attempts: Attempts, tmp_path: Path, server: psycopg.Connection[Any], type_: str, values: Any, stored: Any
) -> None:
    server.execute(f"CREATE TABLE t (id int, v {type_})")
    watch(server)
    rows = [{"id": at, "v": value} for at, value in enumerate(values)]
    assert (await transfer(attempts, tmp_path, rows)).result["row_count"] == len(rows)
    assert [row[0] for row in server.execute("SELECT v::text FROM t ORDER BY id")] == stored
    assert statements(server) == {"INSERT"}


async def test_chunks_of_both_kinds_and_of_other_columns_are_one_transfer(
    attempts: Attempts, tmp_path: Path, server: psycopg.Connection[Any]
) -> None:
    server.execute("CREATE TABLE t (id int, v text)")
    watch(server)
    rows: list[dict[str, Any]] = [{"id": at, "v": "x"} for at in range(6)]
    rows += [{"id": 6.0, "v": "x"}, *({"v": "y", "id": at} for at in (7, 8, 9, 10, 11))]
    assert (await transfer(attempts, tmp_path, rows)).result["chunks"] == 4
    assert [row[0] for row in server.execute("SELECT id FROM t ORDER BY id")] == list(range(12))
    assert statements(server) == {"COPY", "INSERT"}


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE base (id int, v text); CREATE VIEW t AS SELECT * FROM base",
        (
            "CREATE TABLE t (id int, v text); CREATE TABLE base (id int, v text); "
            "CREATE RULE r AS ON INSERT TO t DO INSTEAD INSERT INTO base VALUES (NEW.id, NEW.v)"
        ),
    ],
)
async def test_a_view_and_a_table_with_rules_are_written(
    attempts: Attempts, tmp_path: Path, server: psycopg.Connection[Any], made: str
) -> None:
    server.execute(made)
    assert (await transfer(attempts, tmp_path, [{"id": 1, "v": "a"}])).result["row_count"] == 1
    assert server.execute("SELECT * FROM base").fetchall() == [(1, "a")]


@pytest.mark.parametrize(
    ("row", "kind"),
    [({"id": 1, "v": "a"}, "db_constraint"), ({"id": "no number", "v": "a"}, "schema"), ({"nope": 1}, "client_error")],
)
async def test_an_error_has_its_kind_and_leaves_nothing(
    attempts: Attempts, tmp_path: Path, server: psycopg.Connection[Any], row: dict[str, Any], kind: str
) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    rows = [{"id": at, "v": "x"} for at in range(6)] + [row]
    error = (await transfer(attempts, tmp_path, rows)).error
    assert (error.kind, error.retryable) == (kind, False)
    assert server.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert (await transfer(attempts, tmp_path, rows[:6])).result["row_count"] == 6
