"""Two control planes on one file, killed at random: nothing is lost.

Workers claim from one and report to the other, starts and signals go to any, and processes are killed at random moments.
Afterwards every log is held to the invariants of the simulation: no run and no item ended twice, no token was lost.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from noetl.clock import SteadyClock
from noetl.dsl.tree.pin import pinned
from noetl.model.messages import AnyMessage, Report, Signal, Start
from noetl.model.outcome import Outcome, ok
from noetl.model.work import Lease
from noetl.ports import Runner, ToolContext
from noetl.ports.work import Answer as Reported
from noetl.server.background.rebuild import Rebuild
from noetl.server.cache.plan_cache import PlanCache
from noetl.stores.sqlite.derived import SqliteDerived
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.scenario import read_playbook
from noetl.wiring.embedded import language_kinds
from noetl.worker.loop import Worker
from noetl.worker.tool_context import WorkerResources
from tests.polling import PollingPlane
from tests.server.plane import Answer, Ask
from tests.simulation.invariants import check_all, effects_happened

ROOT = Path(__file__).parents[3]
PATIENCE_S = 120.0
ITEMS = 5
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{name: {0}, path: planes/{0}}}\nworkflow:\n"
CHILD = HEAD.format("child") + "  - {step: one, tool: {kind: noop}, next: two}\n  - {step: two, tool: {kind: noop}}\n"
PARENT = HEAD.format("parent") + (
    "  - {step: fork, tool: {kind: noop}, next: [each, hear]}\n"
    f"  - {{step: each, loop: {{in: '{{{{ range({ITEMS}) | list }}}}', iterator: n, spec: {{mode: parallel}}}},"
    " tool: {kind: noop}, next: meet}\n"
    "  - {step: hear, tool: {kind: wait, signal: go}, next: meet}\n"
    "  - {step: meet, tool: {kind: noop}, next: call}\n"
    "  - {step: call, tool: {kind: playbook, path: planes/child}, next: end}\n"
    "  - {step: end, tool: {kind: noop}}\n"
)
_answer = msgspec.json.Decoder(Answer)


class Plane:
    """One process, and what it was asked; it is replaced when it is killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._numbers = 0
        self._reading: asyncio.Task[None] | None = None
        self.kills = 0

    async def begin(self) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.server.plane", str(self._path), stdin=pipe, stdout=pipe, cwd=ROOT, limit=2**24
        )
        self._reading = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while (line := await process.stdout.readline()).endswith(b"\n"):
            answer = _answer.decode(line)
            waiting = self._waiting.pop(answer.number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)

    async def ask(self, do: str, about: str, **more: Any) -> Answer:
        """Send a request and wait for the answer. Raises OSError if refused or killed."""
        process = self._process
        if process is None or process.stdin is None:
            raise OSError("there is no process")
        self._numbers += 1
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[self._numbers] = waiting
        process.stdin.write(msgspec.json.encode(Ask(self._numbers, do, about, **more)) + b"\n")
        answer = await waiting
        if answer.error:
            raise OSError(answer.error)
        return answer

    async def kill(self) -> None:
        """Kill the process; pending requests get no answer."""
        process, self._process = self._process, None
        if process is not None:
            self.kills += 1
            process.kill()
            await process.wait()
        if self._reading is not None:
            await self._reading
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(OSError("the process was killed"))
        self._waiting.clear()


class Wires(PollingPlane):
    """What workers see: every call goes to any of the processes."""

    def __init__(self, planes: Sequence[Plane], chance: Random) -> None:
        super().__init__()
        self._planes = planes
        self._chance = chance

    def any(self) -> Plane:
        return self._chance.choice(self._planes)

    async def submit(self, execution_id: str, message: AnyMessage) -> Mapping[str, Any]:
        await self.any().ask("submit", execution_id, message=message)
        return {}

    async def claim(self, worker: str, pools: Sequence[str], most: int) -> list[Lease]:
        return (await self.any().ask("claim", worker, most=most, wait_s=0.2)).leases

    async def report_wait(self, execution_id: str, report: Report, want: int) -> Reported:
        return Reported(leases=(await self.any().ask("report", execution_id, report=report, most=want)).leases)

    async def heartbeat(self, worker: str, held: Sequence[tuple[str, int]]) -> list[str]:
        return (await self.any().ask("heartbeat", worker, held=list(held))).gone

    async def playbook(self, playbook: str) -> bytes:
        return (await self.any().ask("playbook", playbook)).content

    async def insist(self, execution_id: str, message: AnyMessage) -> None:
        """Submit a message until it is accepted."""
        while True:
            with suppress(OSError):
                await self.submit(execution_id, message)
                return
            await asyncio.sleep(0.05)


class CountingTools:
    """Tools that take a moment and count what they did."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.effects: Counter[tuple[str, int]] = Counter()

    def runner(self, kind: str) -> Runner | None:
        return self._run

    async def _run(self, fields: Mapping[str, Any], context: ToolContext) -> Outcome:
        await asyncio.sleep(self._chance.choice([0.0, 0.0, 0.01, 0.05]))
        self.effects[context.idempotency_key, context.attempt] += 1
        return ok(1)


async def registered(store: SqliteStore) -> str:
    content = ""
    for text in (CHILD, PARENT):
        playbook = read_playbook(text)
        canonical, content = pinned(playbook)
        await store.register(playbook.path, text.encode(), canonical, content, SteadyClock().now())
    return content


async def race(path: Path, seed: int, executions: int, kills: int) -> None:
    chance = Random(seed)
    store = SqliteStore(path)
    content = await registered(store)
    planes = [Plane(path), Plane(path)]
    for plane in planes:
        await plane.begin()
    wires, tools = Wires(planes, chance), CountingTools(chance)
    nothing: Any = None  # these tools run no child processes and store no large results
    shared = WorkerResources(wires, tools, language_kinds(), SteadyClock(), nothing, nothing, lambda: None)
    workers = [asyncio.create_task(Worker(f"w{n}", shared, capacity=4, heartbeat_s=0.3).run()) for n in range(3)]
    ids = [str(900 + number) for number in range(executions)]

    async def one(execution_id: str) -> None:
        await asyncio.sleep(chance.uniform(0.0, 1.0))
        await wires.insist(execution_id, Start(f"start-{execution_id}", "planes/parent", content))
        await asyncio.sleep(chance.uniform(0.0, 0.5))
        await wires.insist(execution_id, Signal(f"go-{execution_id}", "go", 1))
        while (await store.execution(execution_id) or {}).get("status") != "completed":
            await asyncio.sleep(0.05)

    async def murder() -> None:
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.1, 0.8))
            victim = chance.choice(planes)
            await victim.kill()
            await victim.begin()

    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(murder(), *map(one, ids))
            while await store.inbox(1):
                await asyncio.sleep(0.05)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for plane in planes:
            await plane.kill()
    await hold(store, ids, tools.effects)
    await store.close()


async def hold(store: SqliteStore, ids: Sequence[str], effects: Counter[tuple[str, int]]) -> None:
    derived = SqliteDerived(store)
    logs = {found: await store.read(found) for _, found in await derived.logged(0, 10_000)}
    assert len(logs) == 2 * len(ids), "an execution or a child is missing, or there is one too many"
    for execution_id, events in logs.items():
        check_all(execution_id, events, await derived.rows(execution_id))
        ends = [event.status for event in events if event.event_type == "playbook.finished"]
        assert ends == ["completed"], f"{execution_id} ended {ends}"
    for execution_id in ids:
        steps = Counter(event.entity_id for event in logs[execution_id] if event.event_type == "step.done")
        assert steps == dict.fromkeys(("fork", "each", "hear", "meet", "call", "end"), 1)
        items = Counter(event.iteration for event in logs[execution_id] if event.event_type == "loop.iteration.done")
        assert items == dict.fromkeys(range(ITEMS), 1)
    effects_happened(logs, effects, calm=False)
    assert await Rebuild(store, derived, PlanCache(store, {})).check() == []


def test_two_planes_on_one_file(tmp_path: Path) -> None:
    asyncio.run(race(tmp_path / "noetl.db", 1, executions=8, kills=3))


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(2, 12))
def test_two_planes_for_longer(tmp_path: Path, seed: int) -> None:
    asyncio.run(race(tmp_path / "noetl.db", seed, executions=80, kills=25))
