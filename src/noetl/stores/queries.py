"""Reads the SQL files of a store: named statements, the schema, and the migrations that lead to it.

Runs nothing. Tested in tests/unit/stores/test_queries.py.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from sqlite3 import complete_statement

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_SENTENCE = re.compile(r"^-- name: (.+)$", re.MULTILINE)


def _text(dialect: str, *names: str) -> str:
    return files("noetl.stores").joinpath("sql", dialect, *names).read_text(encoding="utf-8")


@cache
def queries(dialect: str) -> dict[str, str]:
    """Give the statements of a dialect by name."""
    return _named(_NAME, _text(dialect, "queries.sql"))


@cache
def invariants(dialect: str) -> dict[str, str]:
    """Give the statements that find nothing in a store that is right, by what they would find."""
    return _named(_SENTENCE, _text(dialect, "invariants.sql"))


def _named(name: re.Pattern[str], text: str) -> dict[str, str]:
    parts = name.split(text)[1:]
    found = {name: text.strip().removesuffix(";") for name, text in zip(parts[::2], parts[1::2], strict=True)}
    if len(found) * 2 != len(parts):
        raise ValueError("two statements have one name")
    return found


def schema(dialect: str) -> tuple[str, ...]:
    """Give the statements that make an empty store."""
    return statements(_text(dialect, "schema.sql"))


def migrations(dialect: str) -> tuple[tuple[str, ...], ...]:
    """Give the statements of each migration, oldest first."""
    folder = files("noetl.stores").joinpath("sql", dialect, "migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(statements(_text(dialect, "migrations", name)) for name in names)


def scripts(dialect: str, name: str) -> tuple[tuple[str, str], ...]:
    """Give an SQL file, or every one of a folder in order, whole: (text, name)."""
    place = files("noetl.stores").joinpath("sql", dialect, name)
    if not place.is_dir():
        return ((_text(dialect, name), name),)
    found = sorted(entry.name for entry in place.iterdir() if entry.name.endswith(".sql"))
    return tuple((_text(dialect, name, title), title.removesuffix(".sql")) for title in found)


def statements(text: str) -> tuple[str, ...]:
    """Split a text into statements."""
    found, start = [], 0
    for match in re.finditer(";", text):
        piece = text[start : match.end()]
        if complete_statement(piece):
            found.append(piece.strip())
            start = match.end()
    return tuple(found)
