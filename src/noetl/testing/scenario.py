"""Play a scenario through the real server and worker, in virtual time.

A scenario is a folder: `playbook.yaml` (and `<name>.yaml` of its children), `outcomes.yaml` with the rule it shows, the
script and the expectations, and `events.golden.yaml` with its log. Tested in tests/scenarios.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import yaml

from noetl.blobs.memory import MemoryBlobs
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned
from noetl.dsl.tree.playbook import Playbook
from noetl.engine.decision.builder import is_blocked
from noetl.engine.queries.result_gc import Terms
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.model.errors import NoetlError
from noetl.model.events import Event
from noetl.model.messages import AnyMessage, Cancel, PatchCtx, Pause, Signal, Start, Unpause
from noetl.ports import Catalog, EventLog, Selection, WorkQueue
from noetl.server.background.result_gc import ResultGC
from noetl.server.cache.state_cache import StateCache
from noetl.server.control_plane import LocalControlPlane
from noetl.testing.scripted import ScriptedTools
from noetl.testing.virtual_time import VirtualClock
from noetl.worker.loop import Worker
from noetl.worker.steps.results import StoredResults
from noetl.worker.tool_context import WorkerResources

EXECUTION: Final = "900000000000000001"
_LONGEST_MS: Final = 60_000
_AFTERWARDS_S: Final = 2.0  # for what comes late


class Store(EventLog, WorkQueue, Catalog, Protocol):
    """A store that implements all three ports."""


@dataclass(frozen=True)
class Scenario:
    """Content of a scenario folder."""

    name: str
    rule: str
    playbooks: Mapping[str, str]  # file → text; the one that runs is playbook.yaml
    script: Mapping[str, Any]
    expect: Mapping[str, Any]


@dataclass
class Played:
    """Result of playing a scenario."""

    refused: str | None = None
    events: list[Event] = field(default_factory=list)
    live: Execution | None = None
    cold: Execution | None = None  # from the store: the last snapshot and what came after it
    children: list[tuple[str, list[Event]]] = field(default_factory=list)
    tools: ScriptedTools = field(default_factory=lambda: ScriptedTools({}))
    stopped: list[str] = field(default_factory=list)  # tools that were ended before the play was over


def read_scenario(folder: Path) -> Scenario:
    script = yaml.safe_load((folder / "outcomes.yaml").read_text())
    files = {path.name: path.read_text() for path in sorted(folder.glob("*.yaml"))}
    playbooks = {name: text for name, text in files.items() if name not in ("outcomes.yaml", "events.golden.yaml")}
    return Scenario(folder.name, script["rule"], playbooks, script, script.get("expect") or {})


def read_playbook(text: str, name: str = "playbook.yaml") -> Playbook:
    """Parse a playbook as it is run."""
    return normalize(parse(text, name))


class Player:
    """One play of a scenario on a store."""

    def __init__(
        self,
        scenario: Scenario,
        store: Store,
        kinds: Kinds,
        tools: ScriptedTools | None = None,
        clock: VirtualClock | None = None,
    ) -> None:
        self._scenario = scenario
        self._script = scenario.script
        self._store = store
        self._clock = clock or VirtualClock()
        self._blobs = MemoryBlobs()
        self._defaults = dict(self._script.get("defaults") or {"pool_capacity": 4})
        self._told = asyncio.Event()
        self._unsaid = len(self._script.get("messages") or ())
        self.tools = tools or ScriptedTools(self._script.get("outcomes") or {})
        self._kinds = kinds
        self.control = LocalControlPlane(
            store,
            self._clock,
            defaults=self._defaults,
            lease_s=float(self._script.get("lease_s", 30.0)),
            look_s=3_600.0,
            snapshot_every=8,
            blobs=self._blobs,
        )
        self.control.sequencer.hooks.register(change=self._told.set)

    async def play(self) -> Played:
        """Play to the end, or until only a signal could continue it."""
        played = Played(tools=self.tools)
        start = await self._registered()
        async with self.control:
            made = self._worker()
            worker = asyncio.create_task(made.run())
            try:
                await self._begin(start)
                await self._watch()
                await asyncio.sleep(_AFTERWARDS_S)
                played.live = await self.control.sequencer.state(EXECUTION)
            except NoetlError as problem:
                played.refused = str(problem)
            finally:
                played.stopped = list(self.tools.stopped)
                worker.cancel()
                await asyncio.wait([worker])
        played.events = await self._store.read(EXECUTION)
        played.cold = await StateCache(self._store).get(EXECUTION)
        for row in reversed(await self._store.executions(Selection(limit=1_000))):
            if row["execution_id"] != EXECUTION:
                played.children.append((row["execution_id"], await self._store.read(row["execution_id"])))
        return played

    async def _begin(self, start: Start) -> None:
        await self.control.submit(EXECUTION, start)

    async def _registered(self) -> Start:
        hashes = {}
        for name, text in self._scenario.playbooks.items():
            playbook = read_playbook(text, name)
            canonical, content = pinned(playbook)
            await self._store.register(playbook.path, text.encode(), canonical, content, self._clock.now())
            hashes[name] = (playbook.path, content)
        path, content = hashes["playbook.yaml"]
        return Start("start", path, content, self._script.get("payload") or {})

    def _worker(self) -> Worker:
        return Worker("w1", self._equipment(), capacity=int(self._script.get("capacity", 4)))

    def _equipment(self) -> WorkerResources:
        nothing: Any = None  # scripted tools run no child processes
        return WorkerResources(
            self.control,
            self.tools,
            self._kinds,
            self._clock,
            nothing,
            self._blobs,
            lambda: None,
            results=StoredResults(self._blobs, self._clock),
            defaults=self._defaults,
        )

    async def _watch(self) -> None:
        speaking = asyncio.create_task(self._speak())
        try:
            async with asyncio.timeout(float(self._script.get("until", _LONGEST_MS)) / 1000):
                while not await self._rests():
                    await self._told.wait()
                    self._told.clear()
        except TimeoutError:
            pass
        finally:
            speaking.cancel()
            await asyncio.wait([speaking])
        if not speaking.cancelled():
            speaking.result()

    async def _rests(self) -> bool:
        row = await self._store.execution(EXECUTION)
        if row is None or self._unsaid:
            return False
        ended = ("completed", "failed", "cancelled", "partial")
        if row["status"] in ended or not row.get("needs_signal"):
            return row["status"] in ended
        return is_blocked(fold(EXECUTION, await self._store.read(EXECUTION)))

    async def _speak(self) -> None:
        begun = self._clock.now()
        for number, said in enumerate(self._script.get("messages") or ()):
            await asyncio.sleep(max(0, begun + said["at"] - self._clock.now()) / 1000)
            if "collect" in said:  # what ended longer ago than that is not kept
                terms = Terms(int(said["collect"]), int(said["collect"]))
                await ResultGC(self._store, self._blobs, self._clock, terms).collect()
            else:
                await self.control.submit(EXECUTION, message(f"said-{number}", said))
            self._unsaid -= 1
            self._told.set()


def message(message_id: str, said: Mapping[str, Any]) -> AnyMessage:
    """Convert a scripted message."""
    if "signal" in said:
        return Signal(message_id, said["signal"], said.get("data"))
    if "patch" in said:
        return PatchCtx(message_id, said["patch"], "operator")
    if "cancel" in said:
        compensate, abandon = bool(said.get("compensate")), bool(said.get("abandon"))
        return Cancel(message_id, said["cancel"] or "", said.get("run"), compensate=compensate, abandon=abandon)
    if "pause" in said:
        return Pause(message_id)
    if "resume" in said:
        return Unpause(message_id)
    raise ValueError(f"a message is a signal, patch, cancel, pause or resume; this is {sorted(said)}")
