"""Callbacks after a commit: in order, for what concerns them, after the replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from noetl.model.work import WorkItem
from noetl.ports import Commit
from noetl.server.sequencer.commit_hooks import CommitHooks

pytestmark = pytest.mark.asyncio
PLAIN = Commit("1", 0, work=(WorkItem("w", "1", "s#1", "s", 1, "hash", {}),), projection={"status": "running"})


class Told:
    """Listener to every hook."""

    def __init__(self, listeners: CommitHooks) -> None:
        self.heard: list[object] = []
        listeners.register(
            commits=self._commits,
            end=lambda commit: self.heard.append(f"end of {commit.execution_id}"),
            drop=lambda commit: self.heard.append(commit.dropped),
            time=self.heard.append,
            doubt=lambda name: self.heard.append(f"doubt about {name}"),
            change=self._changed,
        )
        self.changes = 0

    def _changed(self) -> None:
        self.changes += 1

    def _commits(self, commits: Sequence[Commit]) -> None:
        self.heard.append([commit.execution_id for commit in commits])


async def test_a_plain_commit_concerns_only_those_who_hear_everything() -> None:
    listeners = CommitHooks()
    told = Told(listeners)
    listeners.publish([PLAIN])
    await asyncio.sleep(0)
    assert told.heard == [["1"]]


async def test_what_a_commit_holds_is_published_to_whom_it_concerns() -> None:
    listeners = CommitHooks()
    told = Told(listeners)
    later = WorkItem("w", "1", "s#1", "s", 1, "hash", {}, available_at=30)
    for commit in (
        Commit("1", 0, dropped=("w1",), projection={"ended_at": 9}),
        Commit("2", 0, work=(later,), timers=(("t", 40), ("u", 20))),
        Commit("3", 0, work=(later,)),
    ):
        listeners.publish([commit])
        await asyncio.sleep(0)
    listeners.publish_unknown("4", 50)
    assert told.heard == ["end of 1", ("w1",), ["1"], 20, ["2"], 30, ["3"], "doubt about 4", 50]
    assert told.changes == 4


async def test_commits_are_published_together_and_in_order_in_the_next_pass_of_the_loop() -> None:
    listeners = CommitHooks()
    told = Told(listeners)
    listeners.publish([Commit("1", 0)])
    listeners.publish([Commit("2", 0, timers=(("t", 40),))])
    assert told.heard == []
    await asyncio.sleep(0)
    assert told.heard == [40, ["1", "2"]]
    assert told.changes == 1
