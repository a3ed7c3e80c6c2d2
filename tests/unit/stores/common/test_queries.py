"""SQL files: statements have unique names, are used, and can be prepared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import noetl.stores
from noetl.stores.common.queries import queries, statements
from noetl.stores.sqlite.database import connect

SRC = Path(noetl.stores.__file__).parent.parent


def parameters(text: str) -> list[None]:
    numbered = [int(number) for number in re.findall(r"\?(\d+)", text)]
    return [None] * (max(numbered) if numbered else text.count("?"))


@pytest.mark.parametrize("name", sorted(queries("sqlite")))
def test_every_statement_fits_the_schema(name: str) -> None:
    connection = connect(":memory:")
    text = queries("sqlite")[name]
    connection.execute(f"EXPLAIN {text}", parameters(text))
    connection.close()


@pytest.mark.parametrize("name", sorted(queries("sqlite")))
def test_every_statement_is_used(name: str) -> None:
    code = "".join(path.read_text() for folder in ("stores", "blobs") for path in (SRC / folder).rglob("*.py"))
    assert f'"{name}"' in code


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("find_work", "queue_order"),
        ("expired_leases", "INTEGER PRIMARY KEY"),
        ("due_timers", "timer_at"),
        ("read_facts", "event_log_message"),
        ("has_due_work", "queue_order"),
        ("remove_work", "sqlite_autoindex_queue_1"),
        ("read_events", "sqlite_autoindex_event_log_1"),
        ("read_feed", "INTEGER PRIMARY KEY"),
        ("next_requires", "queue_order"),
        ("ripen_work", "queue_later"),
        ("expire_leases", "sqlite_autoindex_queue_1"),
    ],
)
def test_the_statements_that_run_often_use_their_index(name: str, index: str) -> None:
    connection = connect(":memory:")
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
