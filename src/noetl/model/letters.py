"""Dead letters: work that failed permanently and waits for an operator.

Tested in tests/unit/engine/state/test_dead_letters.py and tests/conformance/test_dead_letters.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

PENDING: Final = "pending"
REPLAYING: Final = "replaying"
REPLAYED: Final = "replayed"
DISCARDED: Final = "discarded"
STATUSES: Final = (PENDING, REPLAYING, REPLAYED, DISCARDED)
NO_LETTERS: Final = "no_dead_letters"  # setting of a server: keep no dead letters
OPEN: Final = (PENDING, REPLAYING)


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Permanently failed step-run or loop item, or an undecidable message.

    Times are milliseconds since the epoch.
    """

    message_id: str
    execution_id: str
    step_id: str
    run_id: str
    reason: str  # exhausted, fatal, poison, lease, poison_message
    attempts: int
    last_error: str
    fingerprint: str  # equal for failures with the same cause
    first_seen: int
    last_seen: int
    path: str = ""
    loop_index: int | None = None
    loop_key: str | None = None
    task: str = ""
    tool_kind: str | None = None
    sink_id: str | None = None
    replays: int = 0
    last_stack: str = ""
    payload: Mapping[str, Any] = {}  # input of the task without secrets; never used to run it again
    context_excerpt: str = ""  # the last 2 KB
    error: Mapping[str, Any] = {}
    status: str = PENDING
    closed_at: int | None = None  # when it was replayed or discarded
    closed_by: str = ""
    note: str = ""  # why it was discarded


class LetterChange(msgspec.Struct, frozen=True):
    """Change of a dead letter by an event: a new letter, or a new status."""

    message_id: str
    status: str
    at: int
    letter: DeadLetter | None = None
    by: str = ""
    note: str = ""


def changed(known: DeadLetter | None, change: LetterChange) -> DeadLetter | None:
    """Apply a change to a letter; None if there is no letter to change."""
    if change.letter is not None:
        return change.letter
    if known is None:
        return None
    closed = None if change.status in OPEN else change.at
    return msgspec.structs.replace(known, status=change.status, closed_at=closed, closed_by=change.by, note=change.note)
