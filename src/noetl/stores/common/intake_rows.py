"""Rows of intakes and of the states of subscriptions in SQL.

Tested in tests/conformance/test_subscriptions.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from noetl.model.commit import Intake
from noetl.ports.triggers import Progress

SEEN_EVERY_MS: Final = 3_600_000  # how often the store notes that a source still offers a message


def intake_row(intake: Intake) -> tuple[Any, ...]:
    """Encode an intake, in the order of `put_intake`."""
    position = msgspec.json.encode(intake.position).decode()
    is_message = bool(intake.shown)
    counts = (int(is_message and not intake.is_poisoned), int(intake.is_poisoned))
    last = (intake.shown, intake.at) if is_message else (None, None)
    return (intake.state_id, position, intake.revision + 1, *counts, *last)


def progress_of(rows: Sequence[Sequence[Any]]) -> Progress:
    """Decode the state of a subscription; without a row, the start."""
    if not rows:
        return Progress()
    position, revision, received, poisoned, last_message, last_at, status = rows[0]
    found = (msgspec.json.decode(position), int(revision), int(received), int(poisoned), last_message, int(last_at))
    return Progress(*found, msgspec.json.decode(status))
