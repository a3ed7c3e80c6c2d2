"""What was collected from logs: later requests read only newer events."""

from __future__ import annotations

import pytest

from noetl.model.events import Event
from noetl.ports.replay import PAGE
from noetl.server.cache.collected import Collected

pytestmark = pytest.mark.asyncio


class Log:
    """A log of any length that counts what is read."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.read_events = 0

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        until = self.last if limit is None else min(self.last, after + limit)
        found = [Event(str(seq), execution_id, seq, "step.done", 0) for seq in range(after + 1, until + 1)]
        self.read_events += len(found)
        return found


class Seqs:
    def __init__(self) -> None:
        self.seqs: list[int] = []

    def add(self, event: Event) -> None:
        self.seqs.append(event.seq)


async def test_a_later_request_reads_only_newer_events() -> None:
    log = Log(PAGE + 7)
    collected = Collected(log)
    assert (await collected.get("1", "x", Seqs)).seqs == list(range(1, PAGE + 8))
    log.last += 3
    assert (await collected.get("1", "x", Seqs)).seqs[-4:] == [PAGE + 7, PAGE + 8, PAGE + 9, PAGE + 10]
    assert log.read_events == PAGE + 10


async def test_a_window_of_a_log_is_read_and_can_grow() -> None:
    log = Log(9_000)
    collected = Collected(log)
    assert (await collected.get("1", "x", Seqs, after=10, to=12)).seqs == [11, 12]
    assert (await collected.get("1", "x", Seqs, after=10, to=14)).seqs == [11, 12, 13, 14]
    assert (await collected.once("1", Seqs(), after=3, to=5)).seqs == [4, 5]
    assert log.read_events == 6


async def test_the_least_recently_used_are_dropped() -> None:
    log = Log(100)
    collected = Collected(log, most_events=250)
    for name in ("a", "b", "a", "c"):  # the third execution of 100 events drops b
        await collected.get(name, "x", Seqs)
    before = log.read_events
    await collected.get("a", "x", Seqs)
    assert log.read_events == before
    await collected.get("b", "x", Seqs)
    assert log.read_events == before + 100
    collected.forget("b")
    await collected.get("b", "x", Seqs)
    assert log.read_events == before + 200
