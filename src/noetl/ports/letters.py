"""Port of the dead-letter queue: list, group and prune.

Dead letters are written with the events that they derive from (`Commit.letters`), never separately. Every adapter passes
tests/conformance/test_dead_letters.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from noetl.model.letters import DeadLetter


class LetterSelection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Filter for listing dead letters; unset fields do not filter."""

    status: tuple[str, ...] = ()  # one of these
    execution_id: str | None = None
    path: str | None = None
    step_id: str | None = None
    tool_kind: str | None = None
    fingerprint: str | None = None  # the group
    before: str | None = None  # after this letter, the last one of the previous page
    limit: int = 100
    within: tuple[str, ...] | None = None  # in one of these namespaces: its path begins with one


class DeadLetters(Protocol):
    """Dead letters: work that failed permanently, by message id."""

    async def letter(self, message_id: str) -> DeadLetter | None: ...

    async def letters(self, selection: LetterSelection) -> list[DeadLetter]:
        """List letters, last failure first; letters of the same moment by id, descending."""

    async def letter_groups(self, selection: LetterSelection) -> list[Mapping[str, Any]]:
        """Group letters by cause, largest group first.

        Each group has fingerprint, count, executions, first_seen, last_seen; and path, step_id, task, tool_kind, reason,
        last_error and message_id of its last letter.
        """

    async def letter_counts(self) -> Mapping[str, int]:
        """Count letters by status; a status without letters may be missing."""

    async def prune_letters(self, before: int) -> int:
        """Delete letters that were replayed or discarded before a time; return how many."""
