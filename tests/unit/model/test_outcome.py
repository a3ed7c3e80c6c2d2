"""Errors in outcomes: their class, and the errors that code may raise."""

from __future__ import annotations

from typing import Any

import pytest

from noetl import CancelError, FatalError, RetryableError, SinkError, TimeoutError
from noetl.model.outcome import ErrorKind, class_of, failed, raised


class BusyError(RetryableError):
    """Derived from one that is known."""


class BothError(SinkError, RetryableError):
    """A write that may be tried again."""


@pytest.mark.parametrize(
    ("error", "kind", "named", "retryable"),
    [
        (RetryableError("x"), "unknown", "RetryableError", True),
        (BusyError("x"), "unknown", "RetryableError", True),
        (FatalError("x"), "unknown", "FatalError", False),
        (SinkError("x"), "unknown", "SinkError", False),
        (BothError("x"), "unknown", "SinkError", True),
        (CancelError("x"), "cancelled", "CancelError", False),
        (TimeoutError("x"), "timeout", "TimeoutError", True),
    ],
)
def test_what_an_error_stands_for(error: Exception, kind: str, named: str, retryable: bool) -> None:
    found = raised(error)
    assert found is not None
    told = found.as_data()["error"]
    assert (told["kind"], told["class"], told["retryable"]) == (kind, named, retryable)
    assert (told["code"], told["message"]) == (f"PY_{type(error).__name__}", "x")


def test_an_error_carries_when_to_try_again_and_why() -> None:
    found = raised(RetryableError("busy", retry_after=5, details={"queue": 7}))
    assert found is not None
    assert found.error is not None
    assert (found.error.retry_after, found.error.details) == (5.0, {"queue": 7})


def test_any_other_error_stands_for_nothing() -> None:
    assert raised(ValueError("x")) is None


@pytest.mark.parametrize(
    ("kind", "more", "named"),
    [
        ("connection", {"retryable": True}, "RetryableError"),
        ("client_error", {}, "FatalError"),
        ("timeout", {"retryable": True}, "TimeoutError"),
        ("db_timeout", {"class_": "SinkError"}, "TimeoutError"),
        ("cancelled", {"retryable": True}, "CancelError"),
        ("db_constraint", {"class_": "SinkError"}, "SinkError"),
    ],
)
def test_every_error_has_a_class(kind: ErrorKind, more: dict[str, Any], named: str) -> None:
    assert failed(kind, "m", **more).as_data()["error"]["class"] == named
    assert class_of({"kind": "unknown"}) == "FatalError"
