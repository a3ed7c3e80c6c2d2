"""SQL files: every statement has its own name, is used, and can be prepared; the migrations lead to the schema."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

import noetl.stores
from noetl.stores.queries import migrations, queries, schema, statements

SRC = Path(noetl.stores.__file__).parent.parent


def tables(steps: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(":memory:")
    try:
        for step in steps:
            for statement in step:
                connection.execute(statement)
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        rows = [(name, *row) for name in sorted(names) for row in connection.execute(f"SELECT * FROM {name}")]
        return found + rows
    finally:
        connection.close()


def parameters(text: str) -> list[None]:
    numbered = [int(number) for number in re.findall(r"\?(\d+)", text)]
    return [None] * (max(numbered) if numbered else text.count("?"))


def test_the_migrations_lead_to_the_schema() -> None:
    assert tables(migrations("sqlite")) == tables([schema("sqlite")])
    assert len(tables([schema("sqlite")])) > 10


@pytest.mark.parametrize("name", sorted(queries("sqlite")))
def test_every_statement_fits_the_schema(name: str) -> None:
    connection = sqlite3.connect(":memory:")
    for statement in schema("sqlite"):
        connection.execute(statement)
    text = queries("sqlite")[name]
    connection.execute(f"EXPLAIN {text}", parameters(text))
    connection.close()


@pytest.mark.parametrize("name", sorted(queries("sqlite")))
def test_every_statement_is_used(name: str) -> None:
    code = "".join(path.read_text() for folder in ("stores", "blobs") for path in (SRC / folder).glob("*.py"))
    assert f'"{name}"' in code


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("find_work", "queue_order"),
        ("expired_leases", "INTEGER PRIMARY KEY"),
        ("due_timers", "timer_at"),
        ("known", "event_log_message"),
        ("append_events", "event_log_message"),
        ("replace_work", "queue_order"),
        ("end_work", "sqlite_autoindex_queue_1"),
        ("read_events", "sqlite_autoindex_event_log_1"),
        ("read_feed", "INTEGER PRIMARY KEY"),
        ("next_requires", "queue_order"),
        ("ripen_work", "queue_later"),
        ("expire_leases", "sqlite_autoindex_queue_1"),
    ],
)
def test_the_statements_that_run_often_use_their_index(name: str, index: str) -> None:
    connection = sqlite3.connect(":memory:")
    for statement in schema("sqlite"):
        connection.execute(statement)
    text = queries("sqlite")[name]
    plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", parameters(text)))
    connection.close()
    assert index in plan
    assert "TEMP B-TREE" not in plan


def test_statements_are_split_at_their_ends_only() -> None:
    text = "-- a; b\nCREATE TABLE t (x TEXT DEFAULT ';');\nCREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;\n"
    found = statements(text)
    assert len(found) == 2
    assert found[1].endswith("END;")
