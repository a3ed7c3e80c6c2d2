"""Context of a tool for one attempt of a task, and the worker's resources.

Tools see it as the port `ToolContext`. Tested in tests/unit/worker/steps/test_run_step.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.tree.playbook import Keychain
from noetl.engine.plan.extract import Wanted
from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.run_info import RunInfo
from noetl.environ import public_variables
from noetl.model.messages import Record
from noetl.model.outcome import Outcome
from noetl.model.plain_data import repaired
from noetl.observe.task_counts import TaskCounts
from noetl.ports import Blobs, Children, Clock, Confirm, ControlPlane, Tools
from noetl.ports.keychain import TokenExchange
from noetl.ports.outbox import OutboxIn
from noetl.ports.web import WebClient
from noetl.ports.work import Cut
from noetl.worker.cooperative import Cooperation
from noetl.worker.processes.walls import OwnThread, Walls
from noetl.worker.secrets.keychain import NO_USERS, KeyRing, Users
from noetl.worker.secrets.managers.access import Access, Asked
from noetl.worker.secrets.oauth2 import EARLY_S, Tokens
from noetl.worker.secrets.redact import Secrets

if TYPE_CHECKING:
    from noetl.worker.http.egress import Egress

MOST_LINES: Final = 1_000  # of one attempt; the rest is counted
MOST_TEXT: Final = 4_000  # of one line
SMALL: Final = (bool, int, type(None))  # types of results that are never stored separately


class Results(Protocol):
    """Store of results that are too large to send inline."""

    async def keep(
        self, task: RunTask, outcome: Outcome, where: Mapping[str, Any]
    ) -> tuple[Outcome, Mapping[str, Any] | None]:
        """Store a large result; return the outcome, and the reference if stored.

        `where`: execution_id, step, number, index, delivery; calling `wanted` returns what the server reads of the
        result; `room` returns how much of a limit other tasks of the pipeline leave; `secrets` masks what is stored.
        """

    async def name(self, made: Mapping[str, Any]) -> None:
        """Make a manifest readable by its address alone."""

    async def load(self, reference: Mapping[str, Any]) -> Any:
        """Return the value of a reference or compact result; raises BadReference."""

    async def items(self, source: Mapping[str, Any], start: int, count: int) -> list[Any]:
        """Return a range of a stored list; raises BadReference."""

    async def adopt(self, value: Any, read: Wanted) -> tuple[Any, Mapping[str, Any] | None]:
        """Return a child's result, and the form in which it is kept if that is another."""

    async def seen(self, step: str, value: Any, read: Wanted) -> Any:
        """Return a step's result as templates see it, with the stored parts they read."""


class Shared:
    """Connections and pools by key, opened on first use, retried, closed at the end."""

    def __init__(self) -> None:
        self._open: dict[str, Any] = {}
        self._lock = asyncio.Lock()

    async def get(self, key: str, open: Callable[[], Awaitable[Any]]) -> Any:
        """Return the resource under a key; open it on first use."""
        async with self._lock:
            if key not in self._open:
                self._open[key] = await open()
            return self._open[key]

    async def close(self) -> None:
        """Close everything; a failure to close one resource does not affect the rest."""
        opened = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(one.close() for one in opened), return_exceptions=True)


async def no_credentials(name: str) -> Mapping[str, Any]:
    raise KeyError(name)


@dataclass(frozen=True)
class WorkerResources:
    """Resources that all runs of a worker share."""

    control: ControlPlane
    tools: Tools
    kinds: Kinds
    clock: Clock
    children: Children
    blobs: Blobs
    http: Callable[..., Any]  # returns a client by its `verify`, created on first use
    credentials: Callable[[str], Awaitable[Mapping[str, Any]]] = no_credentials
    results: Results | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    folder: str = "."
    outbox: Callable[[], OutboxIn] | None = None  # opens it
    shared: Shared = field(default_factory=Shared)
    secrets: Secrets = field(default_factory=Secrets)
    walls: Walls = field(default_factory=Walls)
    egress: Egress | None = None  # None: all hosts
    secret_folders: tuple[str, ...] = ()  # of secrets that are mounted as files
    exchange: TokenExchange | None = None  # of access tokens between workers; None: each has its own
    refresh_s: float = EARLY_S  # before its end, an access token is renewed
    counts: TaskCounts = field(default_factory=TaskCounts)
    image: str = ""  # container image that the worker runs in

    cooperation: Cooperation = field(default_factory=Cooperation)
    tokens: Tokens = field(init=False)
    access: Access = field(init=False)  # to secret managers

    def __post_init__(self) -> None:
        tokens = Tokens(self.http, self.clock, self.secrets.text, self.exchange, self.refresh_s)
        access = Access(self.http, tokens, self.clock.now, self.secrets.learn, self.secret_folders, public_variables)
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "access", access)

    def keys(
        self, declared: Iterable[Keychain] = (), names: Mapping[str, Any] | None = None, users: Users = NO_USERS
    ) -> KeyRing:
        """Return the credentials that a work item may use."""
        resources = (self.credentials, self.tokens, self.secrets, self.cooperation, self.access, users)
        return KeyRing(declared, names or {}, self.clock.now(), *resources)


class Log:
    """The log lines of one attempt, returned as records."""

    def __init__(self, clock: Clock, task: RunTask, index: int | None, secrets: Secrets) -> None:
        self._clock = clock
        self._secrets = secrets
        self._task = task
        self._index = index
        self._lines: list[list[Any]] = []
        self._count = 0
        self._dropped = 0

    def add(self, text: str, level: str) -> None:
        self._count += 1
        if self._count > MOST_LINES:
            self._dropped += 1
            return
        text = repaired(text)
        is_long = len(text) > MOST_TEXT  # its end may have been cut before
        text = self._secrets.text(text, "end" if is_long else "")
        cut = text if len(text) <= MOST_TEXT and not is_long else text[:MOST_TEXT] + "…"
        self._lines.append([self._clock.now(), level, cut])

    @property
    def is_written(self) -> bool:
        """Whether there are lines that were not collected yet."""
        return bool(self._lines) or self._dropped > 0

    def records(self) -> list[Record]:
        """Return the lines that were logged since the last call."""
        if not self.is_written:
            return []
        payload: dict[str, Any] = {"lines": self._lines}
        payload |= {"dropped": self._dropped} if self._dropped else {}
        self._lines, self._dropped = [], 0
        task = self._task
        at = self._clock.now()
        return [Record("task.logged", at, task.label, task.idempotency_key, self._index, task.attempt, payload=payload)]


class Run(Protocol):
    """The work item that an attempt belongs to."""

    @property
    def shared(self) -> WorkerResources: ...

    @property
    def info(self) -> RunInfo: ...

    @property
    def keys(self) -> KeyRing: ...

    @property
    def sources(self) -> dict[object, Callable[[], Iterable[Record]]]:
        """The logs of running attempts."""

    def trace_headers(self, task: RunTask) -> Mapping[str, str]:
        """Return the headers with which a request continues the trace of an attempt."""


@dataclass(frozen=True)
class DetachedRun:
    """A run outside of any lease: the caller collects what it logs."""

    shared: WorkerResources
    info: RunInfo
    sources: dict[object, Callable[[], Iterable[Record]]] = field(default_factory=dict)

    @property
    def keys(self) -> KeyRing:
        return self.shared.keys()

    def trace_headers(self, _task: RunTask) -> Mapping[str, str]:
        return {}


class TaskContext:
    """The port `ToolContext` for one attempt; rarely used parts are lazy."""

    __slots__ = ("_index", "_run", "_task", "auth", "confirm", "deadline", "lines")

    def __init__(
        self,
        run: Run,
        task: RunTask,
        index: int | None = None,
        deadline: int | None = None,
        confirm: Confirm | None = None,
    ) -> None:
        self._run = run
        self._task = task
        self._index = index
        self.auth = task.auth
        self.deadline = deadline
        self.confirm = confirm
        self.lines: Log | None = None  # from the first line on

    async def authorize(self, auth: Mapping[str, Any]) -> None:
        """Resolve `auth`."""
        self.know(await self._run.keys.auth(auth))

    def know(self, auth: Any) -> None:
        """Set the resolved `auth`; the secrets in it are masked from now on."""
        self.auth = auth
        if isinstance(auth, Mapping):
            self._run.shared.secrets.learn(f"{self._task.label}.auth", auth)

    @property
    def execution_id(self) -> str:
        return self._run.info.execution_id

    @property
    def step(self) -> str:
        return self._run.info.step

    @property
    def task(self) -> str:
        return self._task.label

    @property
    def attempt(self) -> int:
        return self._task.attempt

    @property
    def idempotency_key(self) -> str:
        return self._task.idempotency_key

    @property
    def trace(self) -> Mapping[str, str]:
        return self._run.trace_headers(self._task)

    @property
    def input(self) -> Mapping[str, Any]:
        return self._task.input

    @property
    def own(self) -> Mapping[str, Any]:
        return self._task.own

    @property
    def spec(self) -> Mapping[str, Any]:
        return self._task.spec

    @property
    def names(self) -> Mapping[str, Any]:
        return self._task.context

    @property
    def folder(self) -> str:
        return self._run.shared.folder

    @property
    def children(self) -> Children:
        return self._run.shared.children

    def thread(self) -> AbstractAsyncContextManager[OwnThread]:
        return self._run.shared.walls.thread()

    @property
    def blobs(self) -> Blobs:
        return self._run.shared.blobs

    @property
    def outbox(self) -> OutboxIn | None:
        found = self._run.shared.outbox
        return None if found is None else found()

    def web(self, verify: bool | bytes = True) -> WebClient:
        found: WebClient = self._run.shared.http(verify)
        return found

    async def addresses(self, host: str, port: int) -> list[str] | None:
        rules = self._run.shared.egress
        return None if rules is None else [str(address) for address in await rules.addresses(host, port)]

    def now(self) -> int:
        return self._run.shared.clock.now()

    def log(self, text: str, level: str = "info") -> None:
        if self.lines is None:
            shared = self._run.shared
            self.lines = Log(shared.clock, self._task, self._index, shared.secrets)
            self._run.sources[self] = self.lines.records
        self.lines.add(text, level)

    def masked(self, text: str, cut: Cut = "") -> str:
        return self._run.shared.secrets.text(text, cut)

    async def credential(self, name: str) -> Mapping[str, Any]:
        return await self._run.keys.get(name)

    async def secret(
        self, provider: str, name: str, field: str | None = None, **where: str | None
    ) -> tuple[Any, str | None]:
        keys = self._run.keys
        credential = await keys.manager_credential(self.auth)
        found = await keys.secret(provider, Asked(name, **where, credential=credential), field)
        return found.value, found.version

    async def renewed(self, name: str) -> Mapping[str, Any] | None:
        return await self._run.keys.renew(name)

    async def shared(self, key: str, open: Callable[[], Awaitable[Any]]) -> Any:
        return await self._run.shared.shared.get(key, open)
