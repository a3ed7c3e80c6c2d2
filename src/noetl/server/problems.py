"""Errors of the HTTP API: every exception becomes `application/problem+json`.

One table maps the error tree to statuses. An unexpected exception is logged and answered with 500 without its details.
Tested in tests/server/http/test_problems.py.
"""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from noetl.model.errors import (
    BadReference,
    Conflict,
    CredentialUnavailable,
    Denied,
    Foreign,
    InvalidInput,
    InvalidPayload,
    InvalidPlaybook,
    InvalidSetting,
    LimitReached,
    MissingCredentials,
    NoetlError,
    Overloaded,
    Passed,
    SourceUnavailable,
    StoreUnavailable,
    Undecided,
    UnknownExecution,
    Unreachable,
)
from noetl.wire.problem import Problem

MEDIA = "application/problem+json"
STATUSES: dict[type[NoetlError], tuple[int, str]] = {  # first match wins; then the word that `type` ends with
    InvalidPlaybook: (422, "invalid-playbook"),
    InvalidPayload: (422, "invalid-payload"),
    MissingCredentials: (422, "missing-credentials"),
    UnknownExecution: (404, "unknown-execution"),
    InvalidSetting: (400, "invalid-input"),
    InvalidInput: (400, "invalid-input"),
    LimitReached: (409, "limit-reached"),
    Passed: (409, "passed"),
    Conflict: (409, "conflict"),
    BadReference: (404, "bad-reference"),
    Denied: (403, "denied"),
    Overloaded: (429, "overloaded"),
    Unreachable: (503, "unreachable"),
    StoreUnavailable: (503, "store-unavailable"),
    SourceUnavailable: (503, "source-unavailable"),
    CredentialUnavailable: (503, "credential-unavailable"),
    Foreign: (409, "foreign-execution"),
    Undecided: (500, "undecided"),
    NoetlError: (500, "error"),
}
RETRY_S = 2.0
_PLACE = re.compile(r"^(?P<why>.*?)(?: - at `(?:key in )?(?P<where>\$[^`]*)`)?$", re.DOTALL)
_log = logging.getLogger(__name__)


class Refusal(Exception):  # noqa: N818  it is an answer, not a bug
    """An error answer: `detail` says what happened, `fix` what to do."""

    def __init__(
        self,
        status: int,
        word: str,
        detail: str,
        *,
        where: str | None = None,
        fix: str | None = None,
        errors: tuple[Any, ...] = (),
        retry_after_s: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        title = HTTPStatus(status).phrase
        kind = f"about:blank#{word}"
        self.problem = Problem(kind, title, status, detail, where, fix, None, errors, retry_after_s)
        self.headers = headers or {}


def not_found(detail: str, fix: str | None = None) -> Refusal:
    return Refusal(404, "not-found", detail, fix=fix)


def invalid_input(error: msgspec.ValidationError | msgspec.DecodeError, what: str) -> Refusal:
    """Return the refusal of a body or a query that does not match its schema."""
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return Refusal(400, "malformed", f"{what} is not JSON: {text}.", fix="Send one JSON value, encoded as UTF-8.")
    match = _PLACE.match(text)
    why, where = (match["why"], match["where"] or "$") if match else (text, "$")
    return Refusal(422, "invalid-input", f"{what} is invalid: {why}.", where=where, fix="See /api/openapi.json.")


def problem_of(error: BaseException) -> tuple[Problem, dict[str, str]]:
    """Return the problem of an exception, and its headers."""
    if isinstance(error, Refusal):
        return error.problem, error.headers
    if isinstance(error, NoetlError):
        status, word = next(found for kind, found in STATUSES.items() if isinstance(error, kind))
        retry = RETRY_S if status in (429, 503) else None
        kind = f"about:blank#{word}"
        found = Problem(kind, HTTPStatus(status).phrase, status, str(error), retry_after_s=retry)
        if isinstance(error, MissingCredentials):
            return msgspec.structs.replace(found, detail=error.what, fix=error.fix, errors=error.missing), {}
        return found, {}
    if isinstance(error, RecursionError | OverflowError):
        detail = "The request is nested too deeply, or a number in it is too large."
        return Refusal(400, "out-of-bounds", detail, fix="Send flatter data and smaller numbers.").problem, {}
    _log.error("A request failed", exc_info=error)
    detail = "The server failed unexpectedly; see its log."
    return Problem("about:blank#internal", "Internal Server Error", 500, detail), {}


def problem_response(error: BaseException, path: str) -> Response:
    """Return the HTTP response for an exception."""
    problem, headers = problem_of(error)
    if problem.retry_after_s is not None:
        headers = {**headers, "Retry-After": str(max(1, round(problem.retry_after_s)))}
    body = msgspec.json.encode(msgspec.structs.replace(problem, instance=path))
    return Response(body, problem.status, headers, MEDIA)
