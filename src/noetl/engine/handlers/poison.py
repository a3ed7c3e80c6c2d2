"""Poison messages: messages that the server cannot decide.

If deciding a message raises, the whole message is written to the log with a dead letter, and nothing else of its
execution changes. A retried letter sends the message again and is closed when it is decided. A discarded message is
never decided. Tested in tests/unit/engine/handlers/test_poison.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from noetl.engine.decision.builder import DecisionBuilder
from noetl.engine.state.dead_letters import POISON, STACK_BYTES, excerpt, fingerprint, letter_id, of_message
from noetl.engine.state.execution import Execution
from noetl.model.errors import Undecided
from noetl.model.events import Event
from noetl.model.ids import event_id
from noetl.model.letters import DISCARDED, OPEN, PENDING
from noetl.model.messages import Again, AnyMessage, TimerDue

_LAST: Final = 5  # events in a letter's context


def poisoned(events: Sequence[Event], message: AnyMessage, error: BaseException, stack: str, at: int) -> Event:
    """Return the event of a poison message, the same one until it is retried."""
    execution_id, of = events[0].execution_id, of_message(message.message_id)
    earlier = [event for event in events if event.payload.get("of") == of]
    replays = sum(event.event_type == "message.released" for event in earlier)
    first = next((event.timestamp for event in earlier if event.event_type == "message.poisoned"), at)
    kind, step = type(message).__name__, str(getattr(message, "run_id", None) or "").partition("#")[0]
    name = type(error).__name__
    description = {
        "kind": "unknown",
        "code": f"PY_{name}",
        "message": f"a {kind} cannot be decided: {name}: {error}"[:2_000],
    }
    path = str(events[0].payload.get("path", ""))
    letter = {
        "reason": POISON,
        "attempts": replays + 1,
        "replays": replays,
        "fingerprint": fingerprint(path, step, kind, description),
        "first_seen": first,
        "stack": stack[-STACK_BYTES:],
        "context": excerpt({"log": [f"{event.seq} {event.event_type}" for event in events[-_LAST:]]}),
    }
    payload = {"of": of, "message": msgspec.to_builtins(message), "error": description, "letter": letter}
    return Event(
        event_id(f"poisoned:{replays}:{message.message_id}", 0),
        execution_id,
        events[-1].seq + 1,
        "message.poisoned",
        at,
        "server",
        "message",
        step,
        payload=payload,
    )


def refuse_discarded(state: Execution, message: AnyMessage) -> None:
    """Refuse a discarded message. Raises Undecided."""
    if state.phase != "ended" and _status(state, message) == DISCARDED:
        raise Undecided("this message could not be decided and was discarded")


def settle(d: DecisionBuilder) -> None:
    """Close the letter of the message that has been decided."""
    if _status(d.state, d.message) in OPEN:
        _close(d, of_message(d.message.message_id))


def _close(d: DecisionBuilder, of: str) -> None:
    d.update_letter(d.emit("message.settled", "", {"of": of}))


def release(d: DecisionBuilder, again: Again, by: str) -> None:
    """Send a poison message again; if it was applied meanwhile, only close its letter."""
    if d.state.letters.get(letter_id(d.state.execution_id, again.run_id, None), PENDING) != PENDING:
        return
    message = msgspec.convert(again.work["message"], AnyMessage)
    d.update_letter(d.emit("message.released", again.step, {"of": again.run_id, "by": by}))
    timer = d.state.timers.get(message.timer_id) if isinstance(message, TimerDue) else None
    if again.work.get("applied") or (timer is None and isinstance(message, TimerDue)):
        _close(d, again.run_id)
    elif timer is not None:
        d.arm_timer(timer.timer_id, timer.at)  # it is due and fires by itself
    else:
        d.send(d.state.execution_id, message)


def _status(state: Execution, message: AnyMessage) -> str | None:
    return state.letters.get(letter_id(state.execution_id, of_message(message.message_id), None))
