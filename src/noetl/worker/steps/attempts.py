"""One attempt of a task: runs its tool within its time limit.

Every error is an outcome. Makes no decisions and stores nothing. Tested in tests/unit/worker/steps/test_run_step.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from noetl.engine.tasks.actions import RunTask
from noetl.model.errors import CredentialUnavailable
from noetl.model.outcome import Outcome, TaskError, failed
from noetl.model.plain_data import problem, repaired
from noetl.ports import Runner
from noetl.ports.work import run_tool
from noetl.worker.tool_context import TaskContext

_DIGITS = "for integer string conversion"  # in Python's error for a number of too many digits

_log = logging.getLogger(__name__)


async def run_attempt(runner: Runner, task: RunTask, context: TaskContext) -> Outcome:
    """Run an attempt; a time-out cancels the tool, which cancels its own work."""
    try:
        if task.timeout_ms is None and task.auth is None:
            outcome = await run_tool(runner, task.fields, context)
        else:
            outcome = await _limited(runner, task, context)
    except Exception as error:  # noqa: BLE001 - a tool that raises must not end the worker
        outcome = _trouble(task, error)
    return outcome if outcome.error is None else _recordable(outcome, outcome.error)


def _recordable(outcome: Outcome, error: TaskError) -> Outcome:
    """Return an error that the log can hold: its texts may come from anywhere."""
    data = (error.message, error.code, error.details, error.where, outcome.helpers)
    with suppress(TypeError, ValueError, OverflowError, RecursionError):
        if problem(data) is None and msgspec.json.encode(data):
            return outcome
    message, code, details, where, helpers = repaired(data)
    fixed = replace(error, message=message, code=code, details=details, where=where)
    return replace(outcome, error=fixed, helpers=helpers)


async def _limited(runner: Runner, task: RunTask, context: TaskContext) -> Outcome:
    """Run an attempt that has a time limit, or whose `auth` must be resolved first."""
    seconds = None
    if task.timeout_ms is not None:
        seconds = task.timeout_ms / 1000
        ends = context.now() + round(task.timeout_ms)
        context.deadline = ends if context.deadline is None else min(ends, context.deadline)
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            if isinstance(task.auth, Mapping):
                await context.authorize(task.auth)
            return await run_tool(runner, task.fields, context)
    except TimeoutError as error:
        if not limit.expired():
            return _bug(task, error)
        message = f"the task `{task.label}` took longer than its time-out of {seconds or 0:g} s and was ended"
        return failed("timeout", message, retryable=True)


def _trouble(task: RunTask, error: Exception) -> Outcome:
    if isinstance(error, CredentialUnavailable):
        return failed("auth", str(error), code="CREDENTIAL", retryable=error.retryable)
    if isinstance(error, RecursionError | OverflowError | UnicodeError) or _DIGITS in str(error):
        why = "nested too deeply" if isinstance(error, RecursionError) else f"out of range: {error}"
        return failed("schema", f"the task `{task.label}` got or made data that is {why}", code="DATA", sent=True)
    return _bug(task, error)


def _bug(task: RunTask, error: Exception) -> Outcome:
    _log.exception("the kind %s raised instead of giving an outcome", task.kind, exc_info=error)
    message = f"the kind `{task.kind}` failed in an unforeseen way: {type(error).__name__}: {error}"
    return failed("unknown", message, code="TOOL_RAISED")
