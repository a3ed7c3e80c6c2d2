"""Dead letters as a store keeps them: to be looked at, grouped and, when they are closed long enough, removed.

They are written with the events that they follow from (`Commit.letters`), never by themselves. Every port has one
conformance suite that all of its adapters pass (tests/conformance).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from noetl.model.letters import DeadLetter


class LetterSelection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which dead letters to list; what is left out does not narrow."""

    status: tuple[str, ...] = ()  # one of these
    execution_id: str | None = None
    path: str | None = None
    step_id: str | None = None
    tool_kind: str | None = None
    fingerprint: str | None = None  # the group
    before: str | None = None  # after this letter in the list: where the last page ended
    limit: int = 100


class DeadLetters(Protocol):
    """Work that failed for good."""

    async def letter(self, message_id: str) -> DeadLetter | None: ...

    async def letters(self, selection: LetterSelection) -> list[DeadLetter]:
        """List letters, the one that failed last first; of one moment, by id."""

    async def letter_groups(self, selection: LetterSelection) -> list[Mapping[str, Any]]:
        """List causes, the one with most letters first: fingerprint, count, path, step_id, task, tool_kind, reason,
        last_error and message_id of the last one, executions, first_seen, last_seen.
        """

    async def letter_counts(self) -> Mapping[str, int]:
        """Count letters by status; one that no letter has may be left out."""

    async def prune_letters(self, before: int) -> int:
        """Remove the letters that were replayed or discarded before a time; gives how many."""
