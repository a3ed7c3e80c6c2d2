"""Tasks that hold no worker: `sleep`, `wait` and `playbook`.

Tested in tests/unit/engine/pipeline/test_suspend.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from noetl.engine.tasks.actions import Suspend
from noetl.model.outcome import Outcome, TaskError, failed, ok

SUSPENDING: Final = frozenset({"sleep", "wait", "playbook"})
_COMPLETED: Final = ("ok", "completed", "partial")
_WRONG: Final = "`{name}` is {value!r}, which is no {what}"


def wait_for(
    kind: str,
    fields: Mapping[str, Any],
    payload: Mapping[str, Any],
    timeout_ms: float | None,
    at: int,
) -> Suspend | Outcome:
    """Return what a task of such a kind waits for, or the outcome of invalid inputs."""
    try:
        limit = None if timeout_ms is None else at + int(timeout_ms)
        if kind == "sleep":
            moment = _moment(fields, at)
            cut = limit is not None and limit < moment
            civil = fields.get("until") is not None and not cut
            return Suspend("sleep", until=_earlier(limit, moment), cut=cut, civil=civil)
        if kind == "wait":
            signal = fields.get("signal")
            if not isinstance(signal, str) or not signal:
                raise ValueError(_WRONG.format(name="signal", value=signal, what="name of a signal"))
            seconds = fields.get("timeout_s")
            until = limit if seconds is None else _earlier(limit, at + _milliseconds("timeout_s", seconds))
            return Suspend("wait", until=until, signal=signal)
        path = fields.get("path")
        if not isinstance(path, str) or not path:
            raise ValueError(_WRONG.format(name="path", value=path, what="path of a playbook"))
        more = fields.get("payload")
        if more is not None and not isinstance(more, Mapping):
            raise ValueError(_WRONG.format(name="payload", value=more, what="map"))
        child = {"path": path, "payload": {**payload, **(more or {})}}
        child |= {name: fields[name] for name in ("version", "return_step") if fields.get(name) is not None}
        return Suspend("playbook", until=limit, child=child)
    except ValueError as error:
        return failed("schema", str(error))


def woken(suspended: Suspend, began: int, at: int) -> Outcome | None:
    """Return the outcome when the time of a wait is over; None while it lasts."""
    if suspended.until is None or at < suspended.until:
        return None
    if suspended.cause == "sleep" and not suspended.cut:
        return ok({"started_at": _iso(began), "woke_at": _iso(at)})
    subjects = {"wait": f"the signal `{suspended.signal}` did not come", "playbook": "the child playbook did not end"}
    subject = subjects.get(suspended.cause, "the sleep did not end")
    seconds = (suspended.until - began) / 1000
    return failed("timeout", f"{subject} within {seconds:g} s", code="WAIT_TIMEOUT", retryable=True)


def answered(suspended: Suspend, woke: Mapping[str, Any]) -> Outcome | None:
    """Return the outcome of a signal or a child's end; None if a timer woke the run."""
    if suspended.cause == "wait" and woke.get("by") == "signal":
        return ok(woke.get("data"))
    if suspended.cause == "playbook" and woke.get("by") == "child":
        return ok(woke.get("result")) if woke.get("status") in _COMPLETED else _child_failed(woke)
    return None


def _child_failed(woke: Mapping[str, Any]) -> Outcome:
    status, error = woke.get("status"), woke.get("error")
    if isinstance(error, Mapping) and error.get("kind"):
        fields = {name: error[name] for name in TaskError.__struct_fields__ if name in error}
        fields.setdefault("message", f"the child playbook ended with status {status}")
        try:
            return Outcome("error", woke.get("result"), msgspec.convert({**fields, "retryable": False}, TaskError))
        except msgspec.ValidationError:
            pass  # an error kind of another version: described below
    kind: Any = "cancelled" if status == "cancelled" else "unknown"
    message = f"the child playbook ended with status {status}"
    details = {"error": error} if error else None
    return failed(kind, message, code="CHILD_FAILED", details=details, result=woke.get("result"))


def _moment(fields: Mapping[str, Any], at: int) -> int:
    until = fields.get("until")
    if until is None:
        return at + _milliseconds("seconds", fields.get("seconds"))
    if isinstance(until, int | float) and not isinstance(until, bool):
        return int(until * 1000)
    try:
        moment = datetime.fromisoformat(str(until))
    except ValueError:
        raise ValueError(_WRONG.format(name="until", value=until, what="moment in ISO 8601")) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _milliseconds(name: str, value: Any) -> int:
    try:
        number = float(value) if not isinstance(value, bool) else -1.0
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < 2**40:
        raise ValueError(_WRONG.format(name=name, value=value, what="number of seconds"))
    return int(number * 1000)


def _earlier(first: int | None, second: int) -> int:
    return second if first is None else min(first, second)


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat()
