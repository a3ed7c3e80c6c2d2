"""Play one case in virtual time. Tested in tests/unit/testing/test_cases.py."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

from msgspec.structs import replace

from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.tree.pin import pinned
from noetl.dsl.tree.playbook import Playbook, Step, Task
from noetl.engine.decision.builder import status_of
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, checksum
from noetl.engine.tasks.waits import SUSPENDING
from noetl.model.events import Event
from noetl.model.messages import Start
from noetl.ports import Children, Selection, Tools
from noetl.testing.cases.files.read import Given
from noetl.testing.cases.player.crashing_store import CrashingStore
from noetl.testing.cases.player.fast_forward import FastForward
from noetl.testing.cases.player.mocks import Call, Fault, MockedTools, Site, entry_of
from noetl.testing.scenario import EXECUTION, Player, Scenario
from noetl.testing.virtual_time import StuckError, run, threads
from noetl.worker.steps.reporter import FLUSH_MS
from noetl.worker.tool_context import WorkerResources

_LONGEST_MS: Final = 20 * 365 * 86_400_000
_CAPACITY: Final = 4
_LOOK_EVERY: Final = 500  # commits
_MOST_RUNS: Final = 2_000  # of a play that comes to an end
_HOUSEKEEPING_S: Final = frozenset({FLUSH_MS / 2000, 1.0})  # a worker's flushes and heartbeats


class Loaded(Protocol):
    """A parsed and checked playbook."""

    @property
    def tree(self) -> Playbook: ...
    @property
    def content(self) -> bytes: ...


@dataclass(frozen=True)
class Stage:
    """What all plays of a file share."""

    main: Loaded
    others: Sequence[Loaded]  # those that it calls
    kinds: Kinds
    real: Tools | None = None
    # Child processes and an HTTP client, for tools that really run.
    equipment: Callable[[], AbstractAsyncContextManager[tuple[Children, Callable[..., Any]]]] | None = None

    @property
    def playbooks(self) -> list[Loaded]:
        return [self.main, *self.others]


@dataclass
class PlayResult:
    """Result of a play."""

    refused: str | None
    state: Execution
    events: list[Event]
    children: list[tuple[str, list[Event]]]  # of each its path and its log
    calls: list[Call]
    problems: list[str]
    world: dict[str, Any]
    law: str | None = None  # that was broken
    workload: Mapping[str, Any] = field(default_factory=dict)
    commits: int = 0

    @property
    def status(self) -> str:
        """Final or current status."""
        return status_of(self.state)


def play(
    stage: Stage,
    given: Given,
    recorded: Mapping[str, Any] | None = None,
    faults: Mapping[Site, Fault] | None = None,
    dies_at: int | None = None,
) -> PlayResult:
    """Play once until nothing is left; the process dies once before commit `dies_at`."""

    async def main() -> PlayResult:
        player = _CasePlayer(stage, given, recorded, faults, CrashingStore(dies_at=dies_at))
        if stage.equipment is None:
            return await player.lived()
        equipment = stage.equipment()
        with TemporaryDirectory(prefix="noetl-test-") as player.folder:
            with threads():
                player.children, player.http = await equipment.__aenter__()
            try:
                return await player.lived()
            finally:
                with threads():
                    await equipment.__aexit__(None, None, None)

    try:
        return run(main)
    except StuckError as problem:
        return PlayResult(None, Execution(EXECUTION), [], [], [], [f"the play does not go on: {problem}"], {})


class _CasePlayer(Player):
    def __init__(
        self,
        stage: Stage,
        given: Given,
        recorded: Mapping[str, Any] | None,
        faults: Mapping[Site, Fault] | None,
        store: CrashingStore,
        tools: MockedTools | None = None,
    ) -> None:
        self._stage = stage
        self._given = given
        self._memory = store
        self._paths: dict[str, tuple[str, str]] = {}
        self._next_look = _LOOK_EVERY
        self._names = {one.tree.path: one.tree.name for one in stage.playbooks}
        self.folder = "."  # where relative paths of tools begin that really run
        self.children: Any = None
        self.http: Callable[..., Any] = lambda: None
        cursors = {
            (one.tree.path, step.name)
            for one in stage.playbooks
            for step in one.tree.workflow
            if step.loop is not None and step.loop.cursor is not None
        }
        self.mocked = tools or MockedTools(given, self._path_of, recorded, faults, stage.real, cursors)
        script = {
            "payload": given.workload,
            "messages": given.messages,
            "until": _LONGEST_MS,
            "defaults": {"pool_capacity": _CAPACITY, **given.settings},
            "capacity": _CAPACITY,
            "lease_s": _LONGEST_MS / 1000,
        }
        self._leaping = FastForward(self._memory)
        scenario = Scenario("case", "", {}, script, {})
        super().__init__(scenario, self._memory, stage.kinds, self.mocked, self._leaping.clock())

    async def lived(self) -> PlayResult:
        """Play to the end; if the process dies, another one continues."""
        if not self._memory.is_mortal:
            return await self.seen()
        playing = asyncio.ensure_future(self.play())
        dying = asyncio.ensure_future(self._memory.died.wait())
        await asyncio.wait({playing, dying}, return_when=asyncio.FIRST_COMPLETED)
        for task in (playing, dying):
            task.cancel()
        await asyncio.wait({playing, dying})
        store = CrashingStore(self._memory.tables)
        heir = _CasePlayer(self._stage, self._given, None, None, store, self.mocked)
        heir.folder, heir.children, heir.http = self.folder, self.children, self.http
        return await heir.seen()

    async def _begin(self, start: Start) -> None:
        rows = await self._memory.executions(Selection(limit=1_000))
        if not any(row["execution_id"] == EXECUTION for row in rows):
            await super()._begin(start)
        for row in rows:
            await self.control.take_over(str(row["execution_id"]))

    async def seen(self) -> PlayResult:
        played = await self.play()
        state = played.live or Execution(EXECUTION)
        law = None
        if played.live is not None and checksum(fold(EXECUTION, played.events)) != checksum(played.live):
            law = "the log does not fold to the state of the execution"
        return PlayResult(
            played.refused,
            state,
            played.events,
            [(str(events[0].payload.get("path")), events) for _, events in played.children if events],
            self.mocked.called,
            self.mocked.problems,
            self.mocked.world,
            law,
            dict(state.workload),
            self._memory.writes,
        )

    async def _path_of(self, execution_id: str) -> tuple[str, str]:
        found = self._paths.get(execution_id)
        if found is None:
            row = await self._memory.execution(execution_id)
            path = str(row["path"]) if row is not None else self._stage.main.tree.path
            found = self._paths[execution_id] = (path, self._names.get(path, path))
        return found

    async def _registered(self) -> Start:
        start = None
        for one in self._stage.playbooks:
            tree = mocked(one.tree, self._given.mocks)
            canonical, content = pinned(tree)
            await self._memory.register(tree.path, one.content, canonical, content, self._clock.now())
            start = start or Start("start", tree.path, content, self._given.workload)
        assert start is not None
        return start

    def _equipment(self) -> WorkerResources:
        async def credential(name: str) -> Mapping[str, Any]:
            return self._given.keychain[name]

        made = super()._equipment()
        return dataclasses.replace(
            made,
            credentials=credential,
            children=self.children,
            http=self.http,
            folder=self.folder,
            clock=self._leaping.clock(_HOUSEKEEPING_S),
        )

    async def _rests(self) -> bool:
        if self._memory.writes > self._next_look:
            self._next_look += _LOOK_EVERY
            state = await self.control.sequencer.state(EXECUTION)
            runs = sum(sum(ended.values()) for ended in state.counts.values())
            if runs > _MOST_RUNS:
                self.mocked.problems.append(f"the playbook does not come to an end: {runs} step-runs so far")
                return True
        return await super()._rests()


def mocked(tree: Playbook, mocks: Mapping[str, Any]) -> Playbook:
    """Return a playbook in which mocked tasks that would suspend are plain calls."""
    playbook = (tree.path, tree.name)

    def task_of(step: Step, task: Task) -> Task:
        if task.kind not in SUSPENDING or entry_of(mocks, playbook, step.name, task.label) is None:
            return task
        return replace(task, kind="noop")

    steps = tuple(replace(step, tasks=tuple(task_of(step, task) for task in step.tasks)) for step in tree.workflow)
    return tree if steps == tree.workflow else replace(tree, workflow=steps)
