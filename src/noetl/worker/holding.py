"""Tells, anywhere below a piece of work, under which lease it runs: stored results and credentials are asked for in its name.

Tested in tests/client/test_session.py.
"""

from __future__ import annotations

from contextvars import ContextVar

_held: ContextVar[tuple[str, int]] = ContextVar("noetl_lease", default=("", 0))


def hold(work_id: str, epoch: int) -> None:
    """Let what runs from here on in this task, and in those it starts, run under a lease."""
    _held.set((work_id, epoch))


def held() -> tuple[str, int]:
    """Give the work id and the epoch of the lease that this code runs under; an empty one outside of any work."""
    return _held.get()
