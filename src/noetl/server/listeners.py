"""Those who are told of what a sequencer has committed: followers, timers, hand-outs, metrics.

They are told in the order of the commits, and after whoever waits for an answer, so that they keep nobody waiting. Tested in
tests/unit/server/test_sequencer.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from operator import itemgetter

from noetl.model.events import Event
from noetl.ports import Commit


class Listeners:
    """Whom a sequencer tells, and of what."""

    def __init__(self) -> None:
        # Which execution has new events, if it ended, and which they are, where that is known.
        self.on_events: list[Callable[[str, bool, Sequence[Event]], None]] = []
        self.on_end: list[Callable[[Commit], None]] = []  # commits of executions that are over after them
        self.on_doubt: list[Callable[[str], None]] = []  # executions that have changed, nobody knows how
        self.on_commit: list[Callable[[Commit], None]] = []  # everything that this sequencer has applied
        self.on_time: list[Callable[[int], None]] = []  # times at which something may have to be done
        self._untold: list[Commit] = []

    def tell_soon(self, commits: Sequence[Commit]) -> None:
        """Tell of commits that were applied, as soon as those who were just answered have had their turn."""
        if not self._untold:
            asyncio.get_running_loop().call_soon(self._tell_all)
        self._untold += commits

    def tell(self, commit: Commit) -> None:
        """Tell of a commit that was applied, now."""
        if self._untold:
            self._tell_all()
        self._tell(commit)

    def _tell_all(self) -> None:
        commits, self._untold = self._untold, []
        for commit in commits:
            self._tell(commit)

    def _tell(self, commit: Commit) -> None:
        if commit.events:
            ended = "ended_at" in commit.projection
            for tell in self.on_events:
                tell(commit.execution_id, ended, commit.events)
            for tell_end in self.on_end if ended else ():
                tell_end(commit)
        soonest = min(commit.timers, key=itemgetter(1))[1] if commit.timers else 0
        for item in commit.work:
            if item.available_at and (not soonest or item.available_at < soonest):
                soonest = item.available_at
        if soonest:
            self._tell_time(soonest)
        for told in self.on_commit:
            told(commit)

    def tell_unknown(self, execution_id: str, now: int) -> None:
        """Tell that an execution has changed, nobody knows how."""
        for tell in self.on_events:
            tell(execution_id, True, ())
        for doubt in self.on_doubt:
            doubt(execution_id)
        self._tell_time(now)

    def _tell_time(self, at: int) -> None:
        for told in self.on_time:
            told(at)
