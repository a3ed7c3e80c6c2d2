"""Dead letters: which failures become one, and what it contains.

A dead letter is work that failed for good and that no arc takes: an item of a loop, a step-run, a compensation without attempts
left; or a message that the server cannot decide (`engine.poison`). Cancelled work is none, and neither is a failure without
work to retry, such as a broken condition. Tested in tests/unit/engine/state/test_dead_letters.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from noetl.dsl.secret_names import is_secret_name
from noetl.engine.state.execution import Execution, StepRun
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
    r"""https?://[^\s"'`<>]+                  # a URL: only its host and path
      | '[^']*' | "[^"]*" | `[^`]*`           # quoted text
      | \b0x[0-9a-f]+\b | \b[0-9a-f]{8}-[0-9a-f-]{27}\b | \b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b
      | \d+(?:[.:,]\d+)*""",
    re.IGNORECASE | re.VERBOSE,
)
_NAMED: Final = re.compile(r"PY_(?:KeyError|NameError|AttributeError|ImportError|ModuleNotFoundError)|PG_42|NO_TOOL")


def letter_id(execution_id: str, run_id: str, index: int | None) -> str:
    """Return the letter id of a step-run or item, the same for every failure of it."""
    digest = blake2b(f"{run_id}\n{'' if index is None else index}".encode(), digest_size=6).hexdigest()
    return f"{execution_id}-{digest}"


def of_message(message_id: str) -> str:
    """Return what stands for the run id in the letter of a message."""
    return f"{_MESSAGE}{message_id}"


def is_of_message(run_id: str) -> bool:
    """Return whether a letter is that of a message."""
    return run_id.startswith(_MESSAGE)


def fingerprint(path: str, step: str, task: str, error: Mapping[str, Any]) -> str:
    """Hash the place, kind and message of a failure, without what varies by item."""
    code = str(error.get("code", ""))
    keeps_names = error.get("kind") == "template" or _NAMED.match(code) is not None  # the quoted name is the cause
    text = _WITHIN.sub(lambda match: _varies(match[0], keeps_names), str(error.get("message", ""))[:2_000])
    parts = (path, step, task, str(error.get("kind", "")), code, text)
    return blake2b("\n".join(parts).encode(errors="replace"), digest_size=6).hexdigest()


def _varies(text: str, keeps_names: bool) -> str:
    if text[0] in "'\"`":
        return text if keeps_names else "'…'"
    if "://" in text:
        return re.sub(r"\d+", "#", text.partition("?")[0])
    return "#"


def is_letter(error: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Return whether a failure becomes a dead letter; a cancellation does not."""
    return error.get("kind") != "cancelled" and NO_LETTERS not in defaults


def reason(error: Mapping[str, Any], attempts: int) -> str:
    """Return why the work is dead: lease, exhausted, poison or fatal."""
    if error.get("code") == "LEASE_LOST":
        return "lease"
    if error.get("retryable") or attempts > 1:
        return "exhausted"
    return "poison" if error.get("kind") == "parse" else "fatal"


def about(
    state: Execution, run: StepRun, error: Mapping[str, Any], last: Mapping[str, Any] | None, item: Any = None
) -> dict[str, Any]:
    """Return the letter of a failure; `last` is what the worker reported of it."""
    report = last or {}
    attempts = max(int(report.get("attempts") or 1), run.attempt)
    task = str(error.get("task", ""))
    letter: dict[str, Any] = {
        "reason": reason(error, attempts),
        "attempts": attempts,
        "fingerprint": fingerprint(state.path, run.step, task, error),
        "first_seen": int(report.get("first_seen") or run.started_at or run.scheduled_at),
        "payload": report.get("payload") or _inputs(run, item),
        "context": str(report.get("context") or _seen(state, run, item)),
    }
    letter |= {name: report[name] for name in ("tool", "sink", "stack") if report.get(name)}
    return letter


def _inputs(run: StepRun, item: Any) -> dict[str, Any]:
    return {"args": without_secrets(run.args), **({} if item is None else {"item": without_secrets(item)})}


def _seen(state: Execution, run: StepRun, item: Any) -> str:
    scopes = {"workload": state.workload, "ctx": state.ctx if run.seen is None else run.seen.ctx, "args": run.args}
    return excerpt(scopes | ({} if item is None else {"item": item}))


def excerpt(scopes: Mapping[str, Any]) -> str:
    """Return the end of a context as text, secrets masked by name."""
    shown = {name: without_secrets(value) for name, value in scopes.items() if value not in (None, {}, [], "")}
    data = msgspec.json.encode(shown, enc_hook=str)
    return data[-EXCERPT_BYTES:].decode(errors="ignore")


def without_secrets(value: Any) -> Any:
    """Return plain data with values under a secret's name masked."""
    if isinstance(value, Mapping):
        return {key: _masked(str(key), item) for key, item in value.items()}
    return [without_secrets(item) for item in value] if isinstance(value, list | tuple) else value


def _masked(key: str, value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple) or value in (None, ""):
        return without_secrets(value)
    return MASK if is_secret_name(key) else value


def change_of(path: str, event: Event) -> LetterChange | None:
    """Return what an event changes about a dead letter; None for almost all events."""
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
    content = payload.get("letter")
    if content is None:
        return None
    error = content.get("error") or payload.get("error") or {}
    letter = DeadLetter(
        name,
        event.execution_id,
        _text(event.entity_id),
        _text(run_id),
        content["reason"],
        content["attempts"],
        _text(error.get("message", "")),
        content["fingerprint"],
        content["first_seen"],
        event.timestamp,
        path=_text(path),
        loop_index=index,
        loop_key=None if payload.get("key") is None else _text(payload["key"]),
        task=_text(error.get("task", "")),
        tool_kind=content.get("tool"),
        sink_id=content.get("sink"),
        replays=content.get("replays", 0),
        last_stack=_text(content.get("stack", "")),
        payload=_without_nul(content.get("payload") or without_secrets(payload.get("message") or {})),
        context_excerpt=_text(content.get("context", "")),
        error=_without_nul(error),
    )
    return LetterChange(name, PENDING, event.timestamp, letter)


def _text(value: Any) -> str:
    return str(value).replace("\0", "␀")  # PostgreSQL text cannot hold NUL


def _without_nul(value: Any) -> Any:
    """Return data with NUL replaced in its texts: PostgreSQL takes the row apart."""
    if isinstance(value, str):
        return _text(value) if "\0" in value else value
    if isinstance(value, Mapping):
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    return [_without_nul(item) for item in value] if isinstance(value, list | tuple) else value
