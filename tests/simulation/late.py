"""Worlds with duplicate, reordered and late reports, and worlds that lose rows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, checksum
from noetl.model.errors import NoetlError
from noetl.model.events import Event
from noetl.model.ids import message_digest
from noetl.model.messages import ChildEnded, Collect, Report, Start
from noetl.ports.work import Answer
from noetl.stores.memory.store import MemoryStore
from tests.polling import report_wait
from tests.simulation.world import World

_DAY_MS = 86_400_000
Sent = tuple[str, Report]


def unmoved(state: Execution) -> str:
    """Return the state without facts that were only recorded."""
    return checksum(msgspec.structs.replace(state, seq=0, at=0))


class LateWorld(World):
    """Every report arrives again; some arrive first a day after their worker died."""

    def __init__(self, seed: int, folder: Path | None = None) -> None:
        self._draw = Random(f"late {seed}")
        self._answered: list[Sent] = []
        self._held_back: list[Sent] = []
        self.deliveries = 0
        self.late = 0
        super().__init__(seed, folder)

    async def report(self, execution_id: str, report: Report, want: int = 0) -> Answer:
        sent = (execution_id, report)
        if not self.weather.calm and self._draw.random() < 0.1 and report.worker in self._workers:
            self._held_back.append(sent)
            self.weather.seen["report_held_back"] += 1
            self.kill(report.worker)
            await asyncio.Event().wait()
        if self._draw.random() < 0.5:
            await self._again()
        answer = await super().report(execution_id, report, want)
        self._answered.append(sent)
        if self._draw.random() < 0.5:
            await self._again()
        return answer

    async def _again(self) -> None:
        """Deliver some of what was answered before, in any order: nothing comes of it."""
        some = self._draw.sample(self._answered, min(len(self._answered), self._draw.randint(1, 4)))
        for execution_id, report in some:
            before = await self._events_of(execution_id, report)
            with suppress(NoetlError):
                await super().report(execution_id, report)
            self.deliveries += 1
            after = await self._events_of(execution_id, report)
            assert after == before, f"a report that came again was applied again: {report}"

    async def _events_of(self, execution_id: str, report: Report) -> list[Event]:
        stem = message_digest(report.message_id)
        return [event for event in await self.ground.store.read(execution_id) if event.event_id.startswith(stem)]

    async def _rest(self) -> None:
        await super()._rest()
        logs = await self.ground.logs()
        states = {name: unmoved(fold(name, log)) for name, log in logs.items()}
        self.clock.jump(_DAY_MS)
        everything = [*self._held_back, *self._answered, *self._draw.sample(self._answered, len(self._answered) // 2)]
        self._draw.shuffle(everything)
        while everything:
            some = [everything.pop() for _ in range(min(len(everything), self._draw.randint(1, 5)))]
            self.deliveries += len(some)
            await asyncio.gather(*(report_wait(self.control.report, *sent) for sent in some), return_exceptions=True)
        for name, log in (await self.ground.logs()).items():
            new = log[len(logs[name]) :]
            assert {event.event_type for event in new} <= {"report.late"}, f"a day later: {new}"
            assert unmoved(fold(name, log)) == states[name], "a report of yesterday changed the state"
            self.late += sum(event.event_type == "report.late" for event in log)


class LossyWorld(World):
    """Rows may vanish under the server, which repairs its executions meanwhile."""

    def __init__(self, seed: int, *, loses: bool) -> None:
        self._draw = Random(f"lossy {seed}")
        self._loses = loses
        self.lost = 0
        super().__init__(seed)

    async def _misfortunes(self) -> None:
        self._spawn(self._look())
        if self._loses:
            self._spawn(self._lose())
        await super()._misfortunes()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._draw.uniform(0.1, 1.5))
            with suppress(NoetlError, OSError):
                watch = self.control.reconciler(self.ground.derived)
                watch._old_enough_s = -1_000_000  # the clock may jump back
                await self.call(watch.look())

    async def _lose(self) -> None:
        store = self.ground.store
        assert isinstance(store, MemoryStore)
        tables, inbox = store.tables, msgspec.json.Decoder(Start | ChildEnded | Collect)
        while not self.weather.calm:
            await asyncio.sleep(self._draw.uniform(0.2, 3.0))
            rows: list[tuple[dict[Any, Any], Any]] = [(tables.queue, name) for name in tables.queue]
            rows += [(tables.timers, name) for name in tables.timers]
            for name, (_, text) in tables.messages.items():
                with suppress(msgspec.ValidationError):
                    inbox.decode(text)
                    rows.append((tables.messages, name))
            for table, name in self._draw.sample(rows, min(len(rows), self._draw.randint(1, 3))):
                del table[name]
                self.lost += 1
                self.weather.seen["rows_lost"] += 1
