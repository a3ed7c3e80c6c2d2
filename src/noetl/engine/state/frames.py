"""Frames of a cursor loop: the rows that are claimed at once.

`process: row` makes an item of every row; the rows of a frame are one piece of work. `process: frame` makes an item of
every frame, whose value is the list of its rows. Tested in tests/unit/engine/state/test_frames.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

MOST_ROWS: Final = 100
_LONGEST_KEY: Final = 200

Frame = Mapping[str, Any]  # process, rows, and where given seconds, bytes, width


class Claims:
    """The items that the claims of a cursor loop make, read off its events."""

    def __init__(self) -> None:
        self._frame: Frame = {}
        self._rows: dict[str, list[tuple[Any, str | None]]] = {}  # by claim, until they become frames

    def items(self, kind: str, payload: Mapping[str, Any]) -> Iterator[tuple[Any, str | None]]:
        """Yield the items that an event adds: value and key."""
        if kind == "loop.started":
            self._frame = payload.get("frame", {})
        elif kind == "loop.claim.recorded":
            rows = zip(payload.get("rows", ()), payload.get("keys", ()), strict=True)
            if self._frame.get("process") == "frame":
                self._rows.setdefault(str(payload.get("chunk")), []).extend(rows)
            else:
                yield from rows
        elif kind == "loop.claim.done":
            yield from frames(self._rows.pop(str(payload.get("chunk")), []), self._frame)


def frames(rows: Sequence[tuple[Any, str | None]], frame: Frame) -> Iterator[tuple[list[Any], str | None]]:
    """Yield the rows of each frame with its key, at most `rows` in each."""
    most = frame.get("rows", MOST_ROWS)
    for start in range(0, len(rows), most):
        part = rows[start : start + most]
        yield [row for row, _ in part], frame_key([key for _, key in part])


def frame_key(keys: Sequence[str | None]) -> str | None:
    """Return the key of a frame: those of its rows, or a digest if they are long."""
    named = [key for key in keys if key is not None]
    if not named:
        return None
    joined = ",".join(named)
    return joined if len(joined) <= _LONGEST_KEY else f"frame:{digest(json.dumps(named))}"


def row_key(row: Any, columns: Sequence[str] = (), names: Sequence[str] = ()) -> str:
    """Return the key of a row: its columns `names`, or its canonical JSON.

    A row is a map, or a list whose columns have names or are counted from 0.
    """
    if names:
        return "/".join(str(_value(row, name, columns)) for name in names)
    text = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return text if len(text) <= _LONGEST_KEY else f"row:{digest(text)}"


def _value(row: Any, name: str, columns: Sequence[str]) -> Any:
    if isinstance(row, Mapping):
        return row.get(name)
    if not isinstance(row, list | tuple):
        return row
    index = columns.index(name) if name in columns else int(name) if name.isdecimal() else len(row)
    return row[index] if index < len(row) else None


def digest(text: str) -> str:
    """Return a short name of a text that is too long for a key."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
