"""Decides what a dead letter is and what it says: work that failed for good and that no arc of the playbook takes.

An item of a loop, a step-run whose failure stops or passes its step, a compensation without a try left; and a message that
could not be decided (`engine.poison`). What was cancelled is none, and neither is a failure of the control plane's own making, such as a condition: there is no work to do again.
The letter stands in the payload of the event of the failure, so the table of letters follows from the log. Keeps nothing.
Tested in tests/unit/engine/test_dead_letters.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from noetl.dsl.secret_names import is_secret_name
from noetl.engine.state import Execution, StepRun
from noetl.model.events import Event
from noetl.model.letters import DISCARDED, NO_LETTERS, PENDING, REPLAYED, REPLAYING, DeadLetter, LetterChange

EXCERPT_BYTES: Final = 2_048
STACK_BYTES: Final = 16_384
POISON: Final = "poison_message"
_MESSAGE: Final = "message:"
MASK: Final = "(masked secret)"
LETTER_EVENTS: Final = frozenset((
    "loop.iteration.failed", "step.failed", "next.evaluated", "dlq.replayed", "dlq.returned", "dlq.discarded",
    "loop.item.repaired", "step.repaired", "message.poisoned", "message.released", "message.settled",
))  # fmt: skip
_STATUS: Final = {
    "dlq.replayed": REPLAYING, "dlq.discarded": DISCARDED, "loop.item.repaired": REPLAYED, "step.repaired": REPLAYED,
    "message.released": REPLAYING, "message.settled": REPLAYED,
}  # fmt: skip
_WITHIN: Final = re.compile(
    r"""https?://[^\s"'`<>]+                  # an address: only where it goes
      | '[^']*' | "[^"]*" | `[^`]*`           # what was quoted
      | \b0x[0-9a-f]+\b | \b[0-9a-f]{8}-[0-9a-f-]{27}\b | \b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b
      | \d+(?:[.:,]\d+)*""",
    re.IGNORECASE | re.VERBOSE,
)
_NAMED: Final = re.compile(r"PY_(?:KeyError|NameError|AttributeError|ImportError|ModuleNotFoundError)|PG_42|NO_TOOL")


def letter_id(execution_id: str, run_id: str, index: int | None) -> str:
    """Name the letter of a step-run or of an item: the same however often it fails."""
    digest = blake2b(f"{run_id}\n{'' if index is None else index}".encode(), digest_size=6).hexdigest()
    return f"{execution_id}-{digest}"


def of_message(message_id: str) -> str:
    """Name what the letter of a message is of, where others have a step-run."""
    return f"{_MESSAGE}{message_id}"


def is_of_message(run_id: str) -> bool:
    """Tell whether a letter is that of a message."""
    return run_id.startswith(_MESSAGE)


def fingerprint(path: str, step: str, task: str, error: Mapping[str, Any]) -> str:
    """Give what failures of one cause share: where it was, what kind, and the message without what varies by item."""
    code = str(error.get("code", ""))
    keeps = error.get("kind") == "template" or _NAMED.match(code) is not None  # the name is the cause
    text = _WITHIN.sub(lambda found: _varies(found[0], keeps), str(error.get("message", ""))[:2_000])
    parts = (path, step, task, str(error.get("kind", "")), code, text)
    return blake2b("\n".join(parts).encode(errors="replace"), digest_size=6).hexdigest()


def _varies(text: str, keeps: bool) -> str:
    if text[0] in "'\"`":
        return text if keeps else "'…'"
    if "://" in text:
        return re.sub(r"\d+", "#", text.partition("?")[0])
    return "#"


def is_letter(error: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Tell whether a failure is one that somebody has to look at: not one that was asked for, and where letters are kept."""
    return error.get("kind") != "cancelled" and NO_LETTERS not in defaults


def reason(error: Mapping[str, Any], attempts: int) -> str:
    """Tell why work is dead: no lease or no try was left, it cannot be read, or trying again cannot help."""
    if error.get("code") == "LEASE_LOST":
        return "lease"
    if error.get("retryable") or attempts > 1:
        return "exhausted"
    return "poison" if error.get("kind") == "parse" else "fatal"


def about(
    state: Execution, run: StepRun, error: Mapping[str, Any], last: Mapping[str, Any] | None, item: Any = None
) -> dict[str, Any]:
    """Give what a letter says of a failure, for the payload of its event; `last` is what the worker knows of it."""
    told = last or {}
    attempts = max(int(told.get("attempts") or 1), run.attempt)
    task = str(error.get("task", ""))
    made: dict[str, Any] = {
        "reason": reason(error, attempts),
        "attempts": attempts,
        "fingerprint": fingerprint(state.path, run.step, task, error),
        "first_seen": int(told.get("first_seen") or run.started_at or run.scheduled_at),
        "payload": told.get("payload") or _given(run, item),
        "context": str(told.get("context") or _seen(state, run, item)),
    }
    made |= {name: told[name] for name in ("tool", "sink", "stack") if told.get(name)}
    return made


def _given(run: StepRun, item: Any) -> dict[str, Any]:
    return {"args": without_secrets(run.args), **({} if item is None else {"item": without_secrets(item)})}


def _seen(state: Execution, run: StepRun, item: Any) -> str:
    scopes = {"workload": state.workload, "ctx": state.ctx if run.seen is None else run.seen.ctx, "args": run.args}
    return excerpt(scopes | ({} if item is None else {"item": item}))


def excerpt(scopes: Mapping[str, Any]) -> str:
    """Give the end of a context as text: what is nearest to the failure stands last. Secrets are told by their names."""
    shown = {name: without_secrets(value) for name, value in scopes.items() if value not in (None, {}, [], "")}
    data = msgspec.json.encode(shown, enc_hook=str)
    return data[-EXCERPT_BYTES:].decode(errors="ignore")


def without_secrets(value: Any) -> Any:
    """Give plain data with a mask over what stands under the name of a secret."""
    if isinstance(value, Mapping):
        return {key: _masked(str(key), item) for key, item in value.items()}
    return [without_secrets(item) for item in value] if isinstance(value, list | tuple) else value


def _masked(key: str, value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple) or value in (None, ""):
        return without_secrets(value)
    return MASK if is_secret_name(key) else value


def change_of(path: str, event: Event) -> LetterChange | None:
    """Give what an event changes about a dead letter; None for almost all of them."""
    payload, kind = event.payload, event.event_type
    if kind not in LETTER_EVENTS:
        return None
    run_id, index = payload.get("of", event.step_run_id), event.iteration
    name = letter_id(event.execution_id, str(run_id), index)
    status = _STATUS.get(kind)
    if status is not None:
        if status == REPLAYED and "replay" not in payload and kind != "message.settled":
            return None
        return LetterChange(name, status, event.timestamp, None, payload.get("by", ""), payload.get("reason", ""))
    told = payload.get("letter")
    if told is None:
        return None
    error = told.get("error") or payload.get("error") or {}
    letter = DeadLetter(
        name,
        event.execution_id,
        _text(event.entity_id),
        _text(run_id),
        told["reason"],
        told["attempts"],
        _text(error.get("message", "")),
        told["fingerprint"],
        told["first_seen"],
        event.timestamp,
        path=_text(path),
        loop_index=index,
        loop_key=None if payload.get("key") is None else _text(payload["key"]),
        task=_text(error.get("task", "")),
        tool_kind=told.get("tool"),
        sink_id=told.get("sink"),
        replays=told.get("replays", 0),
        last_stack=_text(told.get("stack", "")),
        payload=told.get("payload") or without_secrets(payload.get("message") or {}),
        context_excerpt=_text(told.get("context", "")),
        error=error,
    )
    return LetterChange(name, PENDING, event.timestamp, letter)


def _text(value: Any) -> str:
    return str(value).replace("\0", "␀")  # which a database cannot hold
