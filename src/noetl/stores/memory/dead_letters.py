"""Dead letters in memory. Tested in tests/conformance/test_dead_letters.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.model.letters import OPEN, DeadLetter
from noetl.ports.letters import LetterSelection
from noetl.stores.memory.tables import Tables

_letter = msgspec.json.Decoder(DeadLetter)
_FIELDS = ("execution_id", "path", "step_id", "tool_kind", "fingerprint")
_SHARED = ("fingerprint", "path", "step_id", "task", "tool_kind", "reason", "last_error", "message_id")


class MemoryLetters:
    """Permanently failed work, by id."""

    tables: Tables

    async def letter(self, message_id: str) -> DeadLetter | None:
        text = self.tables.letters.get(message_id)
        return None if text is None else _letter.decode(text)

    async def letters(self, selection: LetterSelection) -> list[DeadLetter]:
        found = self._chosen(selection)
        if selection.before is not None:
            ids = [letter.message_id for letter in self._chosen(LetterSelection())]
            later = set(ids[: ids.index(selection.before) + 1]) if selection.before in ids else set(ids)
            found = [letter for letter in found if letter.message_id not in later]
        return found[: selection.limit]

    async def letter_groups(self, selection: LetterSelection) -> list[Mapping[str, Any]]:
        groups: dict[str, list[DeadLetter]] = {}
        for letter in self._chosen(selection):
            groups.setdefault(letter.fingerprint, []).append(letter)
        rows: list[Mapping[str, Any]] = [
            {name: getattr(found[0], name) for name in _SHARED}
            | {
                "count": len(found),
                "executions": len({letter.execution_id for letter in found}),
                "first_seen": min(letter.first_seen for letter in found),
                "last_seen": max(letter.last_seen for letter in found),
            }
            for found in groups.values()
        ]
        return sorted(rows, key=lambda row: (-row["count"], row["fingerprint"]))[: selection.limit]

    async def letter_counts(self) -> Mapping[str, int]:
        return Counter(letter.status for letter in self._chosen(LetterSelection()))

    async def prune_letters(self, before: int) -> int:
        closed = [letter for letter in self._chosen(LetterSelection()) if letter.status not in OPEN]
        gone = [letter for letter in closed if (letter.closed_at or 0) < before]
        for letter in gone:
            del self.tables.letters[letter.message_id]
        return len(gone)

    def _chosen(self, selection: LetterSelection) -> list[DeadLetter]:
        found = [
            letter
            for letter in map(_letter.decode, self.tables.letters.values())
            if (not selection.status or letter.status in selection.status)
            and (selection.within is None or letter.path.startswith(selection.within))
            and all(getattr(selection, name) in (None, getattr(letter, name)) for name in _FIELDS)
        ]
        return sorted(found, key=lambda letter: (letter.last_seen, letter.message_id), reverse=True)
