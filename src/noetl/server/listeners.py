"""Those who are told of what a sequencer has committed: followers, timers, hand-outs, metrics.

They are told in the order of the commits, and after whoever waits for an answer, so that they keep nobody waiting. What most
commits do not hold has listeners of its own, so that a commit costs only those whom it concerns. Tested in
tests/unit/server/test_listeners.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from noetl.ports import Commit

_FAR = 2**62


class Listeners:
    """Whom a sequencer tells, and of what."""

    def __init__(self) -> None:
        # Everything that this sequencer has applied, together what is told together.
        self.on_commits: list[Callable[[Sequence[Commit]], None]] = []
        self.on_end: list[Callable[[Commit], None]] = []  # commits of executions that are over after them
        self.on_drop: list[Callable[[Commit], None]] = []  # commits that take work away from whoever has it
        self.on_letters: list[Callable[[Commit], None]] = []  # commits with dead letters
        self.on_time: list[Callable[[int], None]] = []  # times at which something may have to be done
        self.on_doubt: list[Callable[[str], None]] = []  # executions that have changed, nobody knows how
        self.on_change: list[Callable[[], None]] = []  # that there is anything new, whatever it is
        self._untold: list[Commit] = []

    def tell_soon(self, commits: Sequence[Commit]) -> None:
        """Tell of commits that were applied, as soon as those who were just answered have had their turn."""
        if not self._untold:
            asyncio.get_running_loop().call_soon(self._tell_untold)
        self._untold += commits

    def tell(self, commit: Commit) -> None:
        """Tell of a commit that was applied, now."""
        if self._untold:
            self._tell_untold()
        self._tell((commit,))

    def _tell_untold(self) -> None:
        commits, self._untold = self._untold, []
        if commits:
            self._tell(commits)

    def _tell(self, commits: Sequence[Commit]) -> None:
        soonest = _FAR
        for commit in commits:
            if "ended_at" in commit.projection:
                for told in self.on_end:
                    told(commit)
            if commit.dropped:
                for told in self.on_drop:
                    told(commit)
            if commit.letters:
                for told in self.on_letters:
                    told(commit)
            for _, at in commit.timers:
                soonest = min(soonest, at)
            for item in commit.work:
                if item.available_at:
                    soonest = min(soonest, item.available_at)
        if soonest != _FAR:
            self._tell_time(soonest)
        for tell in self.on_commits:
            tell(commits)
        for ring in self.on_change:
            ring()

    def tell_unknown(self, execution_id: str, now: int) -> None:
        """Tell that an execution has changed, nobody knows how."""
        for doubt in self.on_doubt:
            doubt(execution_id)
        self._tell_time(now)
        for ring in self.on_change:
            ring()

    def _tell_time(self, at: int) -> None:
        for told in self.on_time:
            told(at)
