"""The whole system of one seed in virtual time: server, workers, clients, faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from noetl.dsl.tree.pin import pinned
from noetl.engine.decision.builder import is_blocked
from noetl.engine.plan.plan import plan
from noetl.engine.queries.explain import standings
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.model.errors import NoetlError
from noetl.model.messages import AnyMessage, Cancel, PatchCtx, Pause, Report, Signal, Start, Unpause
from noetl.ports.work import Answer
from noetl.server.control_plane import LocalControlPlane
from noetl.testing.scenario import read_playbook
from noetl.testing.virtual_time import VirtualClock
from noetl.wiring.embedded import language_kinds
from noetl.worker.loop import Worker
from noetl.worker.tool_context import WorkerResources
from tests.polling import report_wait
from tests.simulation.advice import advice, has_moved
from tests.simulation.books import CHILD, child_playbook, random_playbook
from tests.simulation.faults import DeadlyTools, Weather, Wire
from tests.simulation.ground import Ground, in_file, in_memory
from tests.simulation.steady import Steady

Result = TypeVar("Result")
EXECUTION = "900000000000000001"
_STORM_S = 40.0  # faults happen until then; after that everything must come to rest
_REST_S = 4_000.0  # of virtual time: a loop of many rests takes long, and is not stuck
_LEASE_S = 3.0
_MOST_HELP = 60
_DEFAULTS = {"pool_capacity": 4}
PARENT = "simulation/parent"


class World:
    """One seed."""

    def __init__(self, seed: int, folder: Path | None = None) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.text = random_playbook(self.chance)
        self.weather = Weather.of(self.chance)
        self.failing = self.chance.choice([0.0, 0.02, 0.05, 0.2])
        self.helpful = self.chance.random() < 0.8  # a client follows the advice of `explain`
        self.helps = 0
        self.effects: Counter[tuple[str, int]] = Counter()  # idempotency key, attempt
        self.ground: Ground = in_memory(_DEFAULTS) if folder is None else in_file(folder, _DEFAULTS)
        self.clock = VirtualClock()
        self.plans = {path: plan(read_playbook(text), path, _DEFAULTS) for path, text in self._books().items()}
        self.steady = Steady(self.plans)
        self._max_attempts = self.chance.choice([3, 50])
        self._down = asyncio.Event()  # set while there is no server
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._born = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.control = self._server()

    def _books(self) -> dict[str, str]:
        return {CHILD: child_playbook(), PARENT: self.text}

    def _server(self) -> LocalControlPlane:
        return LocalControlPlane(
            self.ground.serve(self.weather, self.steady.look),
            self.clock,
            defaults=_DEFAULTS,
            lease_s=_LEASE_S,
            max_attempts=self._max_attempts,
            look_s=5.0,
            snapshot_every=self.chance.choice([5, 50, 500]),
        )

    # What the parts ask of the world

    async def call(self, asked: Coroutine[Any, Any, Result]) -> Result:
        """Ask the server that is there now; when it goes down, so does the call."""
        if self._down.is_set():
            asked.close()
            raise OSError("there is no server")
        calling = asyncio.ensure_future(asked)
        down = asyncio.ensure_future(self._down.wait())
        try:
            await asyncio.wait({calling, down}, return_when=asyncio.FIRST_COMPLETED)
            if calling.done():
                return calling.result()
            raise OSError("the server went away")
        finally:
            down.cancel()
            calling.cancel()

    async def report(self, execution_id: str, report: Report, want: int = 0) -> Answer:
        """Apply a report on the server that is there now."""
        return await report_wait(self.control.report, execution_id, report, want)

    def later(self, seconds: float, execution_id: str, report: Report) -> None:
        """Deliver a copy of a report some time later."""

        async def deliver() -> None:
            await asyncio.sleep(seconds)
            with suppress(NoetlError, OSError):  # no caller waits for the copy
                await self.call(self.report(execution_id, report))

        self._spawn(deliver())

    def kill(self, worker: str) -> None:
        """End a worker at once, as by `kill -9`; another one comes after a while."""
        task = self._workers.pop(worker, None)
        if task is not None:
            task.cancel()
            self._spawn(self._replace())

    async def _replace(self) -> None:
        await asyncio.sleep(self.chance.uniform(0.0, 2.0))
        self._hire()

    def _hire(self) -> None:
        self._born += 1
        name = f"w{self._born}"
        nothing: Any = None  # these tools run no child processes and store no large results
        shared = WorkerResources(
            Wire(self, name),
            DeadlyTools(self, name),
            language_kinds(),
            self.clock,
            nothing,
            nothing,
            lambda: None,
            defaults=_DEFAULTS,
        )
        worker = Worker(name, shared, capacity=self.chance.randint(1, 4), heartbeat_s=1.0)
        self._workers[name] = asyncio.create_task(worker.run(), name=name)

    def _spawn(self, made: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(made)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # One run

    async def live(self) -> Execution:
        """Play the seed until it ended or waits for a client; return the live state."""
        start = await self._registered()
        await self.control.__aenter__()
        for _ in range(self.chance.randint(1, 5)):
            self._hire()
        try:
            await self._insist(start)
            self._spawn(self._outside())
            self._spawn(self._misfortunes())
            await self._rest()
            return await self._at_rest()
        finally:
            await self._silence()
            await self.control.__aexit__(None, None, None)
            await self.ground.left()

    async def _silence(self) -> None:
        """Stop all clients of the server."""
        speakers = [*self._workers.values(), *self._tasks]
        for task in speakers:
            task.cancel()
        await asyncio.gather(*speakers, return_exceptions=True)

    async def _at_rest(self) -> Execution:
        """Wait until the server is idle, and copy its state.

        The copy includes what is decided and not committed.
        """
        while self._down.is_set():  # a new server is about to start
            await asyncio.sleep(0.1)
        await self._silence()
        sequencer = self.control.sequencer
        while not sequencer.is_idle:
            await asyncio.sleep(0.1)
        return deepcopy(await sequencer.state(EXECUTION))

    async def _registered(self) -> Start:
        store = self.ground.store
        content = ""
        for text in self._books().values():
            playbook = read_playbook(text)
            canonical, content = pinned(playbook)
            await store.register(playbook.path, text.encode(), canonical, content, self.clock.now())
        return Start("start", PARENT, content)

    async def _insist(self, message: AnyMessage) -> None:
        """Send a message to the execution until it is acknowledged, as a client would."""
        while True:
            try:
                await self.call(self.control.submit(EXECUTION, message))
                return
            except (NoetlError, OSError):
                await asyncio.sleep(0.5)

    async def _outside(self) -> None:
        chance = self.chance
        for number in range(chance.randint(0, 4)):
            await asyncio.sleep(chance.uniform(0.0, 10.0))
            name = f"said-{number}"
            draw = chance.random()
            if draw < 0.5:
                await self._insist(Signal(name, "go", number))
            elif draw < 0.8:
                await self._insist(PatchCtx(name, {"open": True}))
            elif draw < 0.9:
                await self._insist(Pause(name))
                await asyncio.sleep(chance.uniform(0.0, 5.0))
                await self._insist(Unpause(f"{name}-resume"))
            elif draw < 0.92:
                await self._insist(Cancel(name, "enough", compensate=draw < 0.915))
            elif draw < 0.97:
                await self._insist(Cancel(name, "not this one", f"s{chance.randint(0, 4)}#1"))
            elif draw < 0.98:
                await self._insist(Cancel(name, "enough of undoing", abandon=True))

    async def _misfortunes(self) -> None:
        """Jump the clock and restart the server until the storm is over."""
        begun = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - begun < _STORM_S:
            await asyncio.sleep(self.chance.uniform(0.2, 2.0))
            if self.weather.strikes("clock_jumps"):
                self.clock.jump(self.chance.choice([-4_000, -500, 1_000, 10_000, 60_000]))
            if self.weather.strikes("server_restarts"):
                await self._restart()
            if self.weather.strikes("tables_lost"):
                await self._restart(self.ground.lose)
        self.weather.calm = True

    async def _restart(self, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        """Drop the server's memory, and start another one on the same store."""
        self._down.set()
        await self.control.__aexit__(None, None, None)
        await self.ground.left()
        if meanwhile is not None:
            await meanwhile()
        await asyncio.sleep(self.chance.uniform(0.0, 3.0))
        self.control = self._server()
        await self.control.__aenter__()
        self._down.clear()

    async def _rest(self) -> None:
        begun = asyncio.get_running_loop().time()
        store = self.ground.store
        while True:
            await asyncio.sleep(2.0)
            if self.steady.problem is not None:
                raise self.steady.problem
            state = fold(EXECUTION, await store.read(EXECUTION))
            passed = asyncio.get_running_loop().time() - begun
            if state.phase == "ended" and not self._down.is_set() and not await store.inbox(1):
                return
            if self.weather.calm and is_blocked(state) and not self._down.is_set():
                if not self.helpful or self.helps >= _MOST_HELP or not await self._help(state):
                    await asyncio.sleep(3.0)
                    return
            elif passed > _REST_S + 10.0 * self.helps:
                raise AssertionError(f"it neither ends nor waits: {state.status}, runs {list(state.runs)}")

    async def _help(self, state: Execution) -> bool:
        """Follow the advice of `explain`, if any, and check that it moves something."""
        store = self.ground.store
        self.helps += 1
        given = advice(f"help-{self.helps}", state, standings(self.plans[PARENT], state, await store.read(EXECUTION)))
        if given is None:
            return False
        message, expected = given
        await self._insist(message)
        await asyncio.sleep(1.0)
        now = fold(EXECUTION, await store.read(EXECUTION))
        moved = any(has_moved(standing, state, now) for standing in expected)
        assert moved, f"{message} moves nothing, and this was to move: {expected}"
        return True
