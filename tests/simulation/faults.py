"""Faults: failing stores, lossy and slow wires, workers that die."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from noetl.model.errors import StoreUnavailable
from noetl.model.messages import Report
from noetl.model.outcome import Outcome, failed, ok
from noetl.model.work import Lease
from noetl.ports import Claim, Commit, EventLog, Receipt, Runner, ToolContext
from noetl.ports.work import Answer
from noetl.stores.memory.store import MemoryStore
from noetl.stores.memory.tables import Tables
from tests.polling import PollingPlane
from tests.watched import WatchedStore

if TYPE_CHECKING:
    from tests.simulation.world import World

Watch = Callable[[EventLog, str], Awaitable[None]]
FAULTS = (
    "dies_before_tool",
    "dies_after_tool",
    "report_lost",
    "answer_lost",
    "report_repeated",
    "report_delayed",
    "cut_off",
    "commit_fails",
    "commit_unknown",
    "clock_jumps",
    "server_restarts",
    "tables_lost",
)


@dataclass
class Weather:
    """Which faults there are in a run, how often, and how many there were."""

    chance: Random
    rates: Mapping[str, float]
    seen: Counter[str] = field(default_factory=Counter)
    calm: bool = False

    @classmethod
    def of(cls, chance: Random) -> Weather:
        """Choose some of the faults, each with its own rate."""
        chosen = [fault for fault in FAULTS if chance.random() < 0.4]
        return cls(chance, {fault: chance.choice([0.03, 0.1, 0.25]) for fault in chosen})

    def strikes(self, fault: str) -> bool:
        """Whether a fault happens now."""
        rate = self.rates.get(fault, 0.0)
        if self.calm or not rate or self.chance.random() >= rate:
            return False
        self.seen[fault] += 1
        return True


async def _fail_at_times(
    weather: Weather,
    watch: Watch,
    log: EventLog,
    commits: Sequence[Commit],
    write: Callable[[], Receipt | Awaitable[Receipt]],
) -> Receipt:
    """Make commits fail at random, before or after writing; `watch` sees written ones."""
    if weather.strikes("commit_fails"):
        raise StoreUnavailable("the disk is full")
    written = write()
    receipt = written if isinstance(written, Receipt) else await written
    for commit in commits:
        await watch(log, commit.execution_id)
    if weather.strikes("commit_unknown"):
        raise StoreUnavailable("the connection broke before the answer came")
    return receipt


class FailingMemory(MemoryStore):
    """A store in memory whose commits fail now and then."""

    def __init__(self, tables: Tables, weather: Weather, watch: Watch) -> None:
        super().__init__(tables)
        self._weather = weather
        self._watch = watch

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        write = partial(super().commit, commits, claims)
        return await _fail_at_times(self._weather, self._watch, self, commits, write)


class FailingSqlite(WatchedStore):
    """A SQLite store whose commits fail at random."""

    def __init__(self, path: Path, weather: Weather, watch: Watch) -> None:
        super().__init__(path)
        self._weather = weather
        self._watch = watch

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        write = partial(super().commit, commits, claims)
        return await _fail_at_times(self._weather, self._watch, self, commits, write)


class Wire(PollingPlane):
    """What lies between a worker and the control plane."""

    def __init__(self, world: World, worker: str) -> None:
        super().__init__()
        self._world = world
        self._worker = worker
        self._weather = world.weather
        self._cut_until = 0.0

    def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._cut_until and self._weather.strikes("cut_off"):
            self._cut_until = now + self._weather.chance.uniform(1.0, 8.0)
        if now < self._cut_until:
            raise OSError("the network is gone")

    async def claim(self, worker: str, pools: Sequence[str], most: int) -> list[Lease]:
        self._check()
        await self._latency()
        return await self._world.call(self._world.control.claim(worker, pools, most, 10.0))

    async def report_wait(self, execution_id: str, report: Report, want: int) -> Answer:
        self._check()
        if self._weather.strikes("report_lost"):
            raise OSError("the report was lost")
        if self._weather.strikes("report_delayed"):
            await asyncio.sleep(self._weather.chance.uniform(0.1, 6.0))
        await self._latency()
        if self._weather.strikes("report_repeated"):
            self._world.later(self._weather.chance.uniform(0.0, 5.0), execution_id, report)
        answer = await self._world.call(self._world.report(execution_id, report, want))
        if self._weather.strikes("answer_lost"):
            raise OSError("the answer was lost")
        return answer

    async def heartbeat(self, worker: str, held: Sequence[tuple[str, int]]) -> list[str]:
        self._check()
        return await self._world.call(self._world.control.heartbeat(worker, held))

    async def playbook(self, playbook: str) -> bytes:
        return await self._world.call(self._world.control.playbook(playbook))

    async def _latency(self) -> None:
        await asyncio.sleep(self._weather.chance.uniform(0.0, 0.02))


class DeadlyTools:
    """Tools that are slow, fail at random, and may kill their worker."""

    def __init__(self, world: World, worker: str) -> None:
        self._world = world
        self._worker = worker

    def runner(self, kind: str) -> Runner | None:
        return self._run

    async def _run(self, fields: Mapping[str, Any], context: ToolContext) -> Outcome:
        world = self._world
        await self._may_die("dies_before_tool")
        # What a tool does depends on its work alone, so that a second delivery does the same.
        own = Random(f"{world.seed}:{context.idempotency_key.partition(':')[2]}:{context.attempt}")
        await asyncio.sleep(own.choice([0.0, 0.01, 0.1, 0.5, 2.0, 5.0]))
        world.effects[context.idempotency_key, context.attempt] += 1
        await self._may_die("dies_after_tool")
        if own.random() < world.failing:
            return failed("server_error", "it broke", retryable=own.random() < 0.7)
        return ok({"n": own.randint(0, 9)})

    async def _may_die(self, fault: str) -> None:
        if self._world.weather.strikes(fault):
            self._world.kill(self._worker)
            await asyncio.Event().wait()
