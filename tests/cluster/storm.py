"""Load on a cluster while PostgreSQL restarts and processes are killed.

What is started has a value that is known beforehand, so an execution that was done twice, in part or not at all is seen.
Everything that happens by chance comes from one seed; what the machine makes of it does not.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from signal import SIGINT, SIGQUIT
from time import monotonic

from noetl.stores.postgres.store import PostgresStore
from tests.cluster.cluster import Cluster
from tests.cluster.load import HEAD, Load, surely
from tests.cluster.process import Process

ITEMS = 4
_MOST_AT_ONCE = 30  # executions under way
_MIXED = 20  # one execution in this many uses every feature
LIGHT = (
    HEAD.format("light")
    + f"""
workflow:
  - step: first
    tool: {{kind: noop, result: {{v: "{{{{ workload.n }}}}"}}}}
    next: each
  - step: each
    loop:
      in: "{{{{ range({ITEMS}) | list }}}}"
      iterator: i
      spec: {{mode: parallel, reduce: {{ctx.total: sum}}}}
    tool: {{kind: noop, result: "{{{{ iter.i }}}}", set: {{ctx.total: "{{{{ iter.i + workload.n }}}}"}}}}
    next: [left, right]
  - {{step: left, tool: {{kind: sleep, seconds: 0.2}}, next: meet}}
  - {{step: right, tool: {{kind: noop, result: 1}}, next: meet}}
  - step: meet
    tool: {{kind: noop, result: {{value: "{{{{ ctx.total + first.v + right }}}}"}}}}
"""
)


def value(number: int) -> int:
    """Return the result of a light execution."""
    return sum(item + number for item in range(ITEMS)) + number + 1


class Storm:
    """A number of executions over a number of seconds, with a record of all faults."""

    def __init__(self, system: Cluster, load: Load, seed: int, count: int, seconds: float, calm: float = 1.0) -> None:
        self._system = system
        self._load = load
        self._chance = Random(seed)
        self.seed, self.count, self.seconds = seed, count, seconds
        self._calm = calm  # part of the usual pause between faults
        self.light: dict[str, int] = {}  # execution → its number
        self.faults: Counter[str] = Counter()
        self._end = 0.0

    async def blow(self) -> None:
        """Start all executions under faults, then restore the cluster; do not wait."""
        self._end = monotonic() + self.seconds
        await self._load.register(LIGHT)
        breaking = [
            asyncio.create_task(self._now_and_then(5, 40, self._restart_postgres)),
            asyncio.create_task(self._now_and_then(1, 12, self._kill)),
        ]
        await self._start_all()
        await asyncio.gather(*breaking)
        await self._system.restored()

    async def _start_all(self) -> None:
        begun, room = monotonic(), asyncio.Semaphore(_MOST_AT_ONCE)

        async def start(number: int) -> None:
            async with room:
                if number % _MIXED == 0:
                    await self._load.start(1)
                    return
                client = self._load.clients[number % 2]
                key = f"{self.seed}-{number}"
                started = await surely(lambda: client.execute("faults/light", {"n": number}, idempotency_key=key))
                self.light[started.execution_id] = number

        starting = []
        for number in range(self.count):
            await asyncio.sleep(max(0.0, begun + number * self.seconds / self.count - monotonic()))
            starting.append(asyncio.create_task(start(number)))
        await asyncio.gather(*starting)

    async def _now_and_then(self, least: float, most: float, do: Callable[[], Awaitable[None]]) -> None:
        while True:
            pause = self._calm * self._chance.uniform(least, most)
            if monotonic() + pause > self._end:
                return
            await asyncio.sleep(pause)
            await do()

    async def _restart_postgres(self) -> None:
        how = self._chance.choice([SIGINT, SIGQUIT])
        await asyncio.to_thread(self._system.postgres.stop, how)
        await asyncio.sleep(self._chance.uniform(0.0, 1.0))
        await asyncio.to_thread(self._system.postgres.start)
        await self._system.restored()
        self.faults[f"PostgreSQL restarted ({'fast' if how == SIGINT else 'crash'})"] += 1

    async def _kill(self) -> None:
        victim: Process = self._chance.choice([*self._system.serving, *self._system.working])
        victim.kill()
        await asyncio.sleep(self._chance.uniform(0.0, 1.0))
        victim.start()
        self.faults[f"{re.sub('-.*', '', victim.name)} killed"] += 1

    async def hold(self) -> str:
        """Check the value and the invariants of every execution; return a summary."""
        self._load.others |= {name: str(number) for name, number in self.light.items()}
        await self._load.hold()
        store, rows, told = PostgresStore(self._system.database), Counter[str](), Counter[str]()
        wrong: list[str] = []
        try:
            for execution_id, number in self.light.items():
                row = await store.execution(execution_id) or {}
                rows[str(row.get("status"))] += 1
                if row.get("status") != "completed" or row.get("result") != {"value": value(number)}:
                    wrong.append(f"{execution_id}: {row.get('status')} {row.get('result')}, not {value(number)}")
            async with store.database.connection() as connection:
                for kind, count in await connection.fetch(
                    "SELECT event_type, count(*) FROM event WHERE event_type = ANY ($1) GROUP BY 1",
                    ["report.late", "execution.repaired"],
                ):
                    told[kind] = count
        finally:
            await store.close()
        summary = self._summary(rows, len(wrong), told)
        assert len(self.light) + len(self._load.mixed) == self.count, summary
        assert not wrong, f"{summary}\n{wrong[:5]}"
        return summary

    def _summary(self, rows: Counter[str], wrong: int, told: Counter[str]) -> str:
        lines = {
            "seed": self.seed,
            "seconds": f"{self.seconds:g}",
            "executions started": self.count,
            "of which with everything": len(self._load.mixed),
            "completed": rows["completed"] + len(self._load.mixed),
            "with the exact value": len(self.light) - wrong + len(self._load.mixed),
            "unexplained": wrong,
            **dict(sorted(self.faults.items())),
            "late reports that changed nothing": told["report.late"],
            "executions whose rows were put back": told["execution.repaired"],
        }
        return "\n".join(f"  {name:<38} {found:>10}" for name, found in lines.items())
