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

# What helps against an error, by its code or else its kind.
_FIXES: Final[Mapping[str, str]] = {
    "NO_CREDENTIAL": "Store the credential with `noetl credential put NAME`, or `export NOETL_CREDENTIAL_NAME=…` for a local run.",
    "connection": "Check the address, and that it can be reached from where the worker runs.",
    "timeout": "Allow more time with `timeout`, or find out what takes so long: `noetl logs ID`.",
    "rate_limit": "Send less at once: lower `max_in_flight` of the loop, or wait between requests.",
    "auth": "Check the credential that `auth` names, and what it may do.",
    "not_found": "Check the name or the address of what is missing.",
    "client_error": "Correct the request: the response says what is wrong.",
    "server_error": "The other side failed. When it works again, `noetl retry ID` continues from this step.",
    "parse": "Correct the text at the place that the message names.",
    "template": "Correct the expression, or guard a value that may be missing: `{{ x | default(0) }}`.",
    "schema": "Correct the value, or the template that produces it.",
    "python": "Correct the code at that line.",
    "db_connection": "Check the address in the credential, and that the database runs.",
    "db_constraint": "The row breaks a rule of the table: write other values, or use `mode: upsert` with a `key`.",
    "db_deadlock": "Run it again: `noetl retry ID`.",
    "db_timeout": "Allow more time with `timeout`, or make the statement faster.",
    "reference": "Check the path: the file or the stored result must exist where the worker runs.",
}


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


def fix_of(error: Mapping[str, Any], execution_id: str) -> str:
    """Return what helps against an execution's error; empty if that is not known."""
    found = _FIXES.get(str(error.get("code"))) or _FIXES.get(str(error.get("kind")), "")
    return found.replace(" ID`", f" {execution_id}`")


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
