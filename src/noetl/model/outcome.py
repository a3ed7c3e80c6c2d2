"""Outcomes of tasks: one envelope for every tool, and its error.

Tools return outcomes, policies read them. Tested in tests/unit/engine/pipeline/test_pipeline.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

ErrorKind = Literal[
    "connection", "timeout", "rate_limit", "auth", "not_found", "client_error", "server_error", "schema", "parse",
    "template", "python", "db_connection", "db_constraint", "db_deadlock", "db_timeout", "cancelled", "reference",
    "unknown",
]  # fmt: skip


class TaskError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a task failed; `sent`: the request may have taken effect.

    `where` is the line of code that failed: `line`, `source`, `file` of a script, and the last `frames`.
    """

    kind: ErrorKind
    message: str
    code: str = ""
    retryable: bool = False
    retry_after: float | None = None
    details: Mapping[str, Any] | None = None
    sent: bool = False
    class_: str = msgspec.field(name="class", default="")  # only if the other fields do not imply it, see `class_of`
    where: Mapping[str, Any] | None = None


def class_of(error: Mapping[str, Any]) -> str:
    """Return the class of an error, such as RetryableError or SinkError."""
    kind = error.get("kind")
    if kind in ("timeout", "db_timeout"):
        return "TimeoutError"
    if kind == "cancelled":
        return "CancelError"
    return error.get("class") or ("RetryableError" if error.get("retryable") else "FatalError")


def whole(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error with every field that templates may read, defaults included."""
    data = {"code": "", "retryable": False, "retry_after": None, "details": None, **error}
    data["class"] = class_of(error)
    return data


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one attempt; `helpers` is the kind's own part."""

    status: Literal["ok", "error"]
    result: Any = None
    error: TaskError | None = None
    meta: Mapping[str, Any] = {}
    helpers: Mapping[str, Mapping[str, Any]] = {}

    def as_data(self) -> dict[str, Any]:
        """Return the envelope as templates see it."""
        return {
            "status": self.status,
            "result": self.result,
            "error": whole(msgspec.to_builtins(self.error)) if self.error else None,
            "meta": dict(self.meta),
            **self.helpers,
        }


def ok(result: Any = None, **helpers: Mapping[str, Any]) -> Outcome:
    return Outcome("ok", result, helpers=helpers)


def failed(
    kind: ErrorKind,
    message: str,
    *,
    code: str = "",
    retryable: bool = False,
    retry_after: float | None = None,
    details: Mapping[str, Any] | None = None,
    sent: bool = False,
    class_: str = "",
    where: Mapping[str, Any] | None = None,
    result: Any = None,
    **helpers: Mapping[str, Any],
) -> Outcome:
    error = TaskError(kind, message, code, retryable, retry_after, details, sent, class_, where)
    return Outcome("error", result, error, helpers=helpers)


_RAISED: Final[Mapping[str, ErrorKind]] = {
    "RetryableError": "unknown", "FatalError": "unknown", "SinkError": "unknown", "CancelError": "cancelled",
    "TimeoutError": "timeout",
}  # fmt: skip


def raised(error: BaseException) -> Outcome | None:
    """Return the outcome of an exception of `noetl.errors`; None for others."""
    names = [base.__name__ for base in type(error).__mro__]
    named = next((name for name in names if name in _RAISED), None)
    if named is None:
        return None
    again = ("RetryableError" in names or named == "TimeoutError") and "FatalError" not in names
    after, details = getattr(error, "retry_after", None), getattr(error, "details", None)
    return failed(
        _RAISED[named],
        str(error) or names[0],
        code=f"PY_{names[0]}",
        retryable=again,
        retry_after=float(after) if isinstance(after, int | float) else None,
        details=details if isinstance(details, Mapping) else None,
        sent=named == "TimeoutError",  # it may have taken effect
        class_="SinkError" if "SinkError" in names else "",
    )
