"""Reads SQL, runs none. Tested in tests/unit/stores/common/test_queries.py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from sqlite3 import complete_statement

from noetl.model.errors import InvalidInput

_NAME = re.compile(r"^-- name: (.+)$", re.MULTILINE)


def _folder(dialect: str) -> Traversable:
    return files(f"noetl.stores.{dialect}").joinpath("sql")


@cache
def queries(dialect: str) -> dict[str, str]:
    """Return the statements of a dialect by name."""
    return _named(_folder(dialect).joinpath("queries.sql").read_text(encoding="utf-8"))


@cache
def invariants(dialect: str) -> dict[str, str]:
    """Return the statements that find violated invariants, by what they find."""
    return _named(_folder(dialect).joinpath("invariants.sql").read_text(encoding="utf-8"))


def _named(text: str) -> dict[str, str]:
    parts = _NAME.split(text)[1:]
    found = {name: text.strip().removesuffix(";") for name, text in zip(parts[::2], parts[1::2], strict=True)}
    if len(found) * 2 != len(parts):
        raise ValueError("two statements have the same name")
    return found


@cache
def migrations(dialect: str) -> tuple[tuple[str, str], ...]:
    """Return the migrations, as text and name, that create an empty store in order."""
    folder = _folder(dialect).joinpath("migrations")
    found = sorted((entry.name, entry) for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple((entry.read_text(encoding="utf-8"), name.removesuffix(".sql")) for name, entry in found)


def hash_of(text: str) -> str:
    """Return the hash of a migration, which a store keeps with its level."""
    return sha256(text.encode()).hexdigest()


def require_same(name: str, applied: Sequence[str], steps: Sequence[tuple[str, str]]) -> None:
    """Compare the hashes of applied migrations with their texts. Raises InvalidInput."""
    for found, (text, title) in zip(applied, steps, strict=False):
        if found != hash_of(text):
            raise InvalidInput(
                f"The migration `{title}` of {name} was applied with another text than this version of NoETL has, so its "
                "tables may differ. Use the version of NoETL that created this store, or another store."
            )


def statements(text: str) -> tuple[str, ...]:
    """Split a text into statements."""
    found, start = [], 0
    for match in re.finditer(";", text):
        piece = text[start : match.end()]
        if complete_statement(piece):
            found.append(piece.strip())
            start = match.end()
    return tuple(found)
