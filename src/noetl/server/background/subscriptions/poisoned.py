"""Dead letters of subscriptions: messages that start no execution.

No log holds them. A letter names the subscription as its step and the id of the message, and holds the message, with which it
is started again. Tested in tests/server/api/triggers/test_subscriptions.py.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import json

from noetl.engine.state.dead_letters import POISON, fingerprint, letter_id, of_message
from noetl.model.letters import PENDING, DeadLetter, LetterChange
from noetl.ports.triggers import Message, StoredTrigger

KIND: Final = "subscription"
_MOST_ERROR: Final = 2_000


def letter_of(
    execution_id: str, trigger: StoredTrigger, message: Message, why: str, most_bytes: int, now: int
) -> LetterChange:
    """Return the dead letter of a message; one that is too large is not kept whole."""
    run_id, text = of_message(message.message_id), why.replace("\0", "")[:_MOST_ERROR]
    payload: dict[str, Any] = {"id": message.message_id, "data": message.data, **message.facts}
    payload |= {"problem": message.problem} if message.problem else {}
    try:
        if len(json.encode(payload)) > most_bytes:
            payload.pop("data")
    except (TypeError, ValueError, RecursionError):
        payload = {"id": message.message_id}
    error = {"kind": "schema", "code": "POISON_MESSAGE", "message": text}
    name = letter_id(execution_id, run_id, None)
    letter = DeadLetter(
        name, execution_id, trigger.trigger_id, run_id, POISON, 1, text,
        fingerprint(trigger.path, trigger.trigger_id, "", error), now, now,
        trigger.path, tool_kind=KIND, payload=payload, error=error,
    )  # fmt: skip
    return LetterChange(name, PENDING, now, letter)
