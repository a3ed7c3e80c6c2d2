"""How long a call of a workbook task may take: whatever runs or waits inside it ends with the call's time-out.

Tested in tests/unit/engine/test_pipeline_names.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from noetl.engine.actions import RunTask, Suspend
from noetl.engine.frame import Frame
from noetl.engine.memory import Memory
from noetl.model.outcome import Outcome, failed


def limited(limit_ms: float, at: int) -> Memory:
    """Give the memory of a call that begins now and may take so long."""
    return Memory(limit_ms=limit_ms, deadline=at + round(limit_ms))


def bounded(found: RunTask | Suspend, call: Frame, at: int) -> RunTask | Suspend | Outcome:
    """Give what a call asks for, ended by its time-out; an outcome where that is over."""
    deadline = call.memory.deadline
    if at >= deadline:
        seconds = call.memory.limit_ms / 1000
        message = f"the call of the workbook task `{call.task.label}` took longer than its time-out of {seconds:g} s and was ended"
        return failed("timeout", message, retryable=True)
    if isinstance(found, RunTask):
        left = float(deadline - at)
        return found if found.timeout_ms is not None and found.timeout_ms <= left else replace(found, timeout_ms=left)
    return found if found.until is not None and found.until <= deadline else replace(found, until=deadline)


def earliest(moment: int | None, *deadlines: int) -> int | None:
    """Give the first of some moments; 0 is no deadline."""
    return min((found for found in (moment, *deadlines) if found), default=moment)
