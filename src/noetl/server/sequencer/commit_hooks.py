"""Callbacks for commits: followers, timers, workers, metrics.

They are called in commit order and after the replies, so they delay none. Rare contents of commits have their own
callbacks, so a commit costs only what concerns it. Tested in tests/unit/server/sequencer/test_commit_hooks.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from noetl.ports import Commit

_FAR = 2**62


class CommitHooks:
    """The callbacks of a sequencer, by what they are called for."""

    def __init__(self) -> None:
        self._on_commits: list[Callable[[Sequence[Commit]], None]] = []  # everything that was applied, in groups
        self._on_end: list[Callable[[Commit], None]] = []  # commits of executions that are over after them
        self._on_drop: list[Callable[[Commit], None]] = []  # commits that take work away from its worker
        self._on_slot: list[Callable[[], None]] = []  # an execution was queued by a limit, or one with a limit ended
        self._on_time: list[Callable[[int], None]] = []  # times at which something may be due
        self._on_doubt: list[Callable[[str], None]] = []  # executions that have changed in an unknown way
        self._on_change: list[Callable[[], None]] = []  # that there is anything new, whatever it is
        self._pending: list[Commit] = []

    def register(
        self,
        *,
        commits: Callable[[Sequence[Commit]], None] | None = None,
        end: Callable[[Commit], None] | None = None,
        drop: Callable[[Commit], None] | None = None,
        slot: Callable[[], None] | None = None,
        time: Callable[[int], None] | None = None,
        doubt: Callable[[str], None] | None = None,
        change: Callable[[], None] | None = None,
    ) -> None:
        """Add callbacks, each by what it is called for."""
        pairs: tuple[tuple[list[Any], Any], ...] = (
            (self._on_commits, commits), (self._on_end, end), (self._on_drop, drop), (self._on_slot, slot),
            (self._on_time, time), (self._on_doubt, doubt), (self._on_change, change),
        )  # fmt: skip
        for calls, call in pairs:
            calls.extend([] if call is None else [call])

    def remove(self, drop: Callable[[Commit], None]) -> None:
        """Remove a callback for dropped work."""
        self._on_drop = [call for call in self._on_drop if call != drop]

    def publish(self, commits: Sequence[Commit]) -> None:
        """Run the callbacks of applied commits after the replies, in the next loop pass."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._publish_pending)
        self._pending += commits

    def _publish_pending(self) -> None:
        commits, self._pending = self._pending, []
        soonest = _FAR
        for commit in commits:
            if "slot" in commit.projection and ("ended_at" in commit.projection or not commit.slot):
                for notice in self._on_slot:
                    notice()
            if "ended_at" in commit.projection:
                for call in self._on_end:
                    call(commit)
            if commit.dropped:
                for call in self._on_drop:
                    call(commit)
            for _, at in commit.timers:
                soonest = min(soonest, at)
            for item in commit.work:
                if item.available_at:
                    soonest = min(soonest, item.available_at)
        if soonest != _FAR:
            self._publish_time(soonest)
        for call_all in self._on_commits:
            call_all(commits)
        for ring in self._on_change:
            ring()

    def publish_unknown(self, execution_id: str, now: int) -> None:
        """Call back for an execution that has changed in an unknown way."""
        for doubt in self._on_doubt:
            doubt(execution_id)
        self._publish_time(now)
        for ring in self._on_change:
            ring()

    def _publish_time(self, at: int) -> None:
        for call in self._on_time:
            call(at)
