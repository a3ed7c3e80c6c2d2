"""What a tool may touch while it runs one attempt of a task, and what the worker owns that all tasks share.

Tools see it as the port `ToolContext`. Tested in tests/unit/worker/test_run_step.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from noetl.dsl.kinds import Kinds
from noetl.dsl.playbook import Keychain
from noetl.engine.actions import RunTask
from noetl.engine.extract import Wanted
from noetl.model.messages import Record
from noetl.model.outcome import Outcome
from noetl.ports import Blobs, Children, Clock, Confirm, ControlPlane, Tools
from noetl.ports.outbox import OutboxIn
from noetl.worker.keychain import KeyRing
from noetl.worker.redact import Secrets
from noetl.worker.shared import Shared
from noetl.worker.tokens import Tokens

MOST_LINES: Final = 1_000  # of one attempt; the rest is counted
MOST_TEXT: Final = 4_000  # of one line
SMALL: Final = (bool, int, type(None))  # results that are never put away


class Results(Protocol):
    """Where results go that are too large to travel."""

    async def keep(
        self, task: RunTask, outcome: Outcome, where: Mapping[str, Any]
    ) -> tuple[Outcome, Mapping[str, Any] | None]:
        """Put a large result away; gives the outcome, and the reference where there is one.

        `where`: execution_id, step, number, index, delivery; `wanted`, called, gives what the server reads of it;
        `secrets` masks what is put away.
        """

    async def name(self, made: Mapping[str, Any]) -> None:
        """Let a manifest be read by its address alone."""

    async def load(self, reference: Mapping[str, Any]) -> Any:
        """Give the value of a reference; raises BadReference."""

    async def items(self, source: Mapping[str, Any], start: int, count: int) -> list[Any]:
        """Give a range of a list that was stored; raises BadReference."""

    async def adopt(self, value: Any, read: Wanted) -> tuple[Any, Mapping[str, Any] | None]:
        """Give the value of a child's result, and the reference under which its parent has it, if it may stay away."""

    async def seen(self, value: Any, read: Wanted) -> Any:
        """Give a step's result as templates see it, with the stored parts loaded that they read."""


async def no_credentials(name: str) -> Mapping[str, Any]:
    raise KeyError(name)


@dataclass(frozen=True)
class Equipment:
    """What every run of a worker shares."""

    control: ControlPlane
    tools: Tools
    kinds: Kinds
    clock: Clock
    children: Children
    blobs: Blobs
    http: Callable[..., Any]  # gives a client by its `verify`, made when it is first asked for
    credentials: Callable[[str], Awaitable[Mapping[str, Any]]] = no_credentials
    results: Results | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    folder: str = "."
    outbox: Callable[[], OutboxIn] | None = None  # opens it
    shared: Shared = field(default_factory=Shared)
    secrets: Secrets = field(default_factory=Secrets)

    tokens: Tokens = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", Tokens(self.http, self.clock))

    def keys(self, declared: Iterable[Keychain] = (), names: Mapping[str, Any] | None = None) -> KeyRing:
        """Give the credentials that a piece of work may use."""
        return KeyRing(declared, names or {}, self.clock.now(), self.credentials, self.tokens, self.secrets)


class Log:
    """The lines of one attempt, given out as records."""

    def __init__(self, clock: Clock, task: RunTask, index: int | None, secrets: Secrets | None = None) -> None:
        self._clock = clock
        self._secrets = secrets or Secrets()
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
        text = self._secrets.text(text)
        cut = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "…"
        self._lines.append([self._clock.now(), level, cut])

    @property
    def is_written(self) -> bool:
        """Whether there is anything that nobody has asked for yet."""
        return bool(self._lines) or self._dropped > 0

    def records(self) -> list[Record]:
        """Give what was logged since the last time somebody asked."""
        if not self.is_written:
            return []
        payload: dict[str, Any] = {"lines": self._lines}
        payload |= {"dropped": self._dropped} if self._dropped else {}
        self._lines, self._dropped = [], 0
        task = self._task
        at = self._clock.now()
        return [Record("task.logged", at, task.label, task.idempotency_key, self._index, task.attempt, payload=payload)]


class TaskContext:
    """The port `ToolContext` for one attempt."""

    def __init__(
        self,
        shared: Equipment,
        task: RunTask,
        log: Log,
        execution_id: str,
        step: str,
        deadline: int | None,
        keys: KeyRing | None = None,
    ) -> None:
        self._keys = keys or shared.keys()
        self.execution_id = execution_id
        self.step = step
        self.task = task.label
        self.attempt = task.attempt
        self.idempotency_key = task.idempotency_key
        self.deadline = deadline
        self.input = task.input
        self.own = task.own
        self.auth = task.auth
        if task.auth is not None and isinstance(task.auth, Mapping):
            shared.secrets.learn(f"{task.label}.auth", task.auth)
        self.spec = task.spec
        self.names = task.context
        self.folder = shared.folder
        self.confirm: Confirm | None = None
        self.children = shared.children
        self.blobs = shared.blobs
        self._shared = shared
        self._log = log

    @property
    def outbox(self) -> OutboxIn | None:
        return None if self._shared.outbox is None else self._shared.outbox()

    @property
    def http(self) -> Any:
        return self._shared.http()

    def web(self, verify: bool | str) -> Any:
        return self._shared.http() if verify is True else self._shared.http(verify)

    def now(self) -> int:
        return self._shared.clock.now()

    def log(self, text: str, level: str = "info") -> None:
        self._log.add(text, level)

    async def credential(self, name: str) -> Mapping[str, Any]:
        return await self._keys.get(name)

    async def renewed(self, name: str) -> Mapping[str, Any] | None:
        return await self._keys.renew(name)

    async def shared(self, key: str, open: Callable[[], Awaitable[Any]]) -> Any:
        return await self._shared.shared.get(key, open)
