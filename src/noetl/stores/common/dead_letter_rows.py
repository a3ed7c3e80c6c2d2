"""Rows of dead letters in SQL stores; columns are the fields, in order.

Tested in tests/conformance/test_dead_letters.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from noetl.model.letters import OPEN, DeadLetter, LetterChange
from noetl.ports.letters import LetterSelection

COLUMNS = DeadLetter.__struct_fields__
GROUP = (
    "fingerprint", "path", "step_id", "task", "tool_kind", "reason", "last_error", "message_id", "count",
    "executions", "first_seen", "last_seen",
)  # fmt: skip
_JSON = tuple(COLUMNS.index(name) for name in ("payload", "error"))
_FIELDS = ("execution_id", "path", "step_id", "tool_kind", "fingerprint")


def row_of(letter: DeadLetter) -> list[Any]:
    """Encode a letter as a row."""
    row = list(astuple(letter))
    for place in _JSON:
        row[place] = msgspec.json.encode(row[place]).decode()
    return row


def letter_of(row: Sequence[Any]) -> DeadLetter:
    """Decode a row."""
    values = list(row)
    for place in _JSON:
        values[place] = msgspec.json.decode(values[place])
    values[COLUMNS.index("execution_id")] = str(values[COLUMNS.index("execution_id")])
    return DeadLetter(*values)


def whole(changes: Iterable[LetterChange]) -> list[DeadLetter]:
    """Return the letters that are written whole."""
    return [change.letter for change in changes if change.letter is not None]


def closed(changes: Iterable[LetterChange]) -> list[tuple[str, str, int | None, str, str]]:
    """Return the changes of status: id, status, closed_at, closed_by, note."""
    return [
        (one.message_id, one.status, None if one.status in OPEN else one.at, one.by, one.note)
        for one in changes
        if one.letter is None
    ]


def conditions_of(selection: LetterSelection) -> dict[str, Any]:
    """Return the wanted values by column; `status` is a list."""
    wanted: dict[str, Any] = {name: getattr(selection, name) for name in _FIELDS}
    wanted["status"] = list(selection.status) or None
    return {name: value for name, value in wanted.items() if value is not None}


def group_of(row: Sequence[Any]) -> Mapping[str, Any]:
    """Decode the row of a group."""
    return dict(zip(GROUP, row, strict=True))
