"""Errors for the code of `python` tasks and for tools of packages: raise one to say what a failure means.

In a `python` task all of them but `TimeoutError`, which Python has, are there without an import; modules take them from
`noetl` (`from noetl import RetryableError`). `outcome.error.class` tells which one it was. They are matched by name,
so a class of your own with the same name, or one derived from it, means the same. Only the standard library is used here:
every child process loads it. Tested in tests/tools/test_python.py.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any


class TaskFailedError(Exception):
    """What these errors share: a message, and details that reach `outcome.error.details`."""

    def __init__(
        self, message: object = "", *, retry_after: float | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.details = details

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class RetryableError(TaskFailedError):
    """Another attempt makes sense, if you like after `retry_after` seconds."""


class FatalError(TaskFailedError):
    """Another attempt makes no sense."""


class SinkError(TaskFailedError):
    """Something could not be written where it belongs."""


class CancelError(TaskFailedError):
    """The work was called off; the outcome is of kind `cancelled`."""


class TimeoutError(builtins.TimeoutError):
    """Something took too long; the outcome is of kind `timeout`."""


PREDEFINED = (RetryableError, FatalError, SinkError, CancelError)
