"""Errors that `python` tasks and tools of packages raise to classify a failure.

In a `python` task they are predefined, except `TimeoutError`, which Python has; modules import them from `noetl`
(`from noetl import RetryableError`). `outcome.error.class` is the class name: errors are matched by name, so a class of your own
with the same name, or a subclass, means the same. Imports only the standard library, because every child process loads it.
Tested in tests/tools/test_python.py.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any


class TaskFailedError(Exception):
    """Base of these errors: a message, and details for `outcome.error.details`."""

    def __init__(
        self, message: object = "", *, retry_after: float | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.details = details

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class RetryableError(TaskFailedError):
    """Temporary failure: retry, optionally after `retry_after` seconds."""


class FatalError(TaskFailedError):
    """Permanent failure: do not retry."""


class SinkError(TaskFailedError):
    """A write to a sink failed."""


class CancelError(TaskFailedError):
    """The task was cancelled; the outcome has the kind `cancelled`."""


class TimeoutError(builtins.TimeoutError):
    """The task timed out; the outcome has the kind `timeout`."""


PREDEFINED = (RetryableError, FatalError, SinkError, CancelError)
