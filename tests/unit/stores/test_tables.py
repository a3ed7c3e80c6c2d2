"""Every table of a store has code that writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import noetl.stores

STORES = Path(noetl.stores.__file__).parent


def texts(store: str) -> tuple[str, str]:
    """Return the schema of a store, and the statements that use it."""
    folder = STORES / store / "sql"
    schema = "\n".join(file.read_text(encoding="utf-8") for file in sorted((folder / "migrations").glob("*.sql")))
    functions = "\n".join(re.findall(r"CREATE FUNCTION.*?\$\$.*?\$\$", schema, re.DOTALL))
    files = [file for file in folder.glob("*.sql") if file.name != "invariants.sql"]
    return schema, "\n".join([functions, *(file.read_text(encoding="utf-8") for file in files)])


def tables(schema: str) -> dict[str, list[str]]:
    """Return the columns of each table."""
    found = re.findall(r"CREATE TABLE (\w+) \(\n(.*?)\n\)", schema, re.DOTALL)
    return {name: re.findall(r"^  ([a-z_]+) (?!KEY)", body, re.MULTILINE) for name, body in found}


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_every_table_is_written(store: str) -> None:
    schema, statements = texts(store)
    names = tables(schema)
    assert len(names) > 15
    assert [name for name in names if not re.search(rf"(INSERT INTO|UPDATE) {name}\b", statements)] == []


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_limit_of_deliveries_is_a_setting_and_no_column(store: str) -> None:
    assert "max_attempts" not in tables(texts(store)[0])["queue"]
