"""Turns what a server answers when something is wrong into the error tree, in sentences for people.

Tested in tests/client/test_api.py.
"""

from __future__ import annotations

from typing import Any

import msgspec

from noetl.model.errors import (
    BadReference,
    Conflict,
    Denied,
    InvalidInput,
    InvalidPayload,
    InvalidPlaybook,
    NoetlError,
    StoreUnavailable,
    UnknownExecution,
    Unreachable,
)
from noetl.wire.problem import Problem

_WORDS: dict[str, type[NoetlError]] = {
    "invalid-playbook": InvalidPlaybook,
    "invalid-payload": InvalidPayload,
    "unknown-execution": UnknownExecution,
    "bad-reference": BadReference,
    "ended": InvalidInput,
    "unknown-worker": Unreachable,
}
_STATUSES: dict[int, type[NoetlError]] = {
    401: Denied,
    403: Denied,
    404: InvalidInput,
    409: Conflict,
    429: StoreUnavailable,
    500: NoetlError,
    502: Unreachable,
    503: StoreUnavailable,
    504: Unreachable,
}
_MOST_SHOWN = 20  # diagnostics of one playbook


def word_of(problem: Problem) -> str:
    """Give the word that a problem's type ends with."""
    return problem.type.partition("#")[2]


def error_of(problem: Problem) -> NoetlError:
    """Give the error that a problem is."""
    default = InvalidInput if 400 <= problem.status < 500 else NoetlError
    kind = _WORDS.get(word_of(problem)) or _STATUSES.get(problem.status, default)
    return kind(sentences(problem))


def sentences(problem: Problem) -> str:
    """Write a problem for people: what is wrong, where, and what to do."""
    where = f" ({problem.where})" if problem.where and problem.where != "$" else ""
    said = f"{_ended(problem.detail or problem.title, where)}"
    if problem.fix:
        said += f" {_ended(problem.fix)}"
    found = [_diagnostic(one) for one in problem.errors[:_MOST_SHOWN]]
    if len(problem.errors) > _MOST_SHOWN:
        found.append(f"… and {len(problem.errors) - _MOST_SHOWN} more")
    return "\n  ".join((said, *found))


def problem_in(body: bytes, status: int) -> Problem:
    """Read the problem of an answer; whatever stands between may have answered something else."""
    try:
        return msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, msgspec.ValidationError):
        text = body[:200].decode(errors="replace").strip()
        return Problem("about:blank#other", f"HTTP {status}", status, f"the server answered {status}: {text}")


def _ended(text: str, more: str = "") -> str:
    text = text.strip()
    return text[:-1] + more + "." if text.endswith(".") else text + more + "."


def _diagnostic(given: Any) -> str:
    if not isinstance(given, dict) or "message" not in given:
        return str(given)
    place = f"{given.get('line', 0)}:{given.get('column', 0)}"
    return f"{place} {given.get('severity', 'error')} {given.get('code', '')}: {given['message']}"
