"""The ports: what the shell's parts ask of each other, in the words of the domain.

Adapters live in `stores`, `blobs`, `server` and `client`; only `wiring` names them. Every port has one conformance suite
that all of its adapters pass (tests/conformance). Times are milliseconds since the epoch and always handed in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from noetl.model.events import Event
from noetl.model.messages import AnyMessage, Report
from noetl.model.outcome import Outcome
from noetl.model.work import Lease, WorkItem


class Clock(Protocol):
    """The time, and the wait for it."""

    def now(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...


class Commit(msgspec.Struct, frozen=True):
    """Everything that one execution's decision changes; applied whole or not at all."""

    execution_id: str
    expected_seq: int
    events: tuple[Event, ...]
    work: tuple[WorkItem, ...] = ()  # to put in the queue; of work that is there already, the content is replaced
    finished: tuple[tuple[str, int], ...] = ()  # (work_id, epoch) to take out; must be leased with that epoch
    held: tuple[tuple[str, int], ...] = ()  # (work_id, epoch) that must be leased with that epoch, and stay so
    dropped: tuple[str, ...] = ()  # work to take out whatever its lease: cancelled, replaced
    timers: tuple[tuple[str, int], ...] = ()  # (timer_id, at) to set
    cleared: tuple[str, ...] = ()  # timers to remove
    inbox: tuple[tuple[str, AnyMessage], ...] = ()  # (execution_id, message) that the system sends itself
    consumed: tuple[str, ...] = ()  # message ids of the inbox that this commit applies
    projection: Mapping[str, Any] = {}  # the row of `execution`: status, path, result, times, counts


class Committed(msgspec.Struct, frozen=True):
    """What became of a commit; only an applied one changed anything.

    `stale`: the log's `last_seq` was another. `duplicate`: its message was applied before. `fenced`: a lease was not held.
    """

    execution_id: str
    status: str  # applied, stale, duplicate, fenced
    last_seq: int


class Claim(msgspec.Struct, frozen=True):
    """What a worker asks of the queue: up to `most` pieces of work of these pools, leased until a time."""

    worker: str
    pools: tuple[str, ...]
    most: int
    now: int
    until: int


class Receipt(msgspec.Struct, frozen=True):
    """What became of a batch: one entry per commit, and one list of leases per claim."""

    commits: tuple[Committed, ...]
    leases: tuple[tuple[Lease, ...], ...] = ()


class EventLog(Protocol):
    """The append-only log with everything that is committed beside it."""

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        """Apply a batch in one transaction, then serve the claims in it, so that new work is handed out with its birth.

        Commits are judged one by one, in order; one that does not apply leaves the others alone.
        """

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...

    async def save_snapshot(self, execution_id: str, seq: int, version: int, state: bytes) -> None: ...

    async def snapshot(self, execution_id: str, version: int) -> tuple[int, bytes] | None: ...

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None: ...

    async def executions(
        self, *, status: str | None = None, before: str | None = None, limit: int = 50
    ) -> list[Mapping[str, Any]]: ...

    async def version(self) -> int:
        """Give a number that changes when somebody else has committed to the same store."""

    async def close(self) -> None: ...


class WorkQueue(Protocol):
    """Work that waits, and the leases on it. Order: priority (higher first), then age.

    Every lease has an epoch that no other lease of the store ever had, so a report on a lost lease cannot pass for another.
    """

    async def claim(self, worker: str, pools: Sequence[str], most: int, now: int, until: int) -> list[Lease]: ...

    async def extend(self, worker: str, held: Sequence[tuple[str, int]], until: int) -> list[str]:
        """Keep leases alive; gives the work ids that are no longer held."""

    async def expired(self, now: int, max_attempts: int) -> list[tuple[Lease, bool]]:
        """Take expired leases back, with a `LeaseLost` message for each in the inbox.

        The work is queued again, or dead where no delivery is left (True).
        """

    async def expire(self, execution_id: str, now: int) -> int:
        """Let every lease of an execution run out now, because whoever held them is known to be dead; gives how many."""

    async def release(self, held: Sequence[tuple[str, int]], now: int) -> None:
        """Give work back unstarted; the delivery is not counted."""

    async def due(self, now: int, most: int) -> list[tuple[str, str, int]]:
        """Give (execution_id, timer_id, at) of timers whose time has come, earliest first; a commit clears them."""

    async def next_time(self, now: int) -> int | None:
        """Give the earliest time after `now` at which a timer is due, a lease runs out or delayed work can be claimed."""

    async def inbox(self, most: int) -> list[tuple[str, AnyMessage]]:
        """Give messages that the system sent itself and that no commit has consumed."""


class Catalog(Protocol):
    """Playbooks by path and version, and canonical trees by content hash."""

    async def register(self, path: str, content: bytes, canonical: bytes, playbook: str, now: int) -> int: ...

    async def canonical(self, playbook: str) -> bytes | None: ...

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None: ...


class Blobs(Protocol):
    """Large results by reference."""

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None: ...

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes: ...

    async def about(self, ref: str) -> Mapping[str, Any]:
        """Give what was put with a blob as its `meta`."""

    async def delete(self, refs: Sequence[str]) -> None: ...


class ControlPlane(Protocol):
    """What a worker and the command line ask of the server, in process or over HTTP."""

    async def submit(self, execution_id: str, message: AnyMessage) -> Mapping[str, Any]:
        """Decide a message; the answer comes after it is durable."""

    async def claim(self, worker: str, pools: Sequence[str], most: int, wait_s: float) -> list[Lease]: ...

    async def report(self, execution_id: str, report: Report, want: int = 0) -> list[Lease]:
        """Apply a report and receive up to `want` pieces of new work in the same commit."""

    async def heartbeat(self, worker: str, held: Sequence[tuple[str, int]]) -> list[str]:
        """Keep leases alive; gives the work ids that must stop: lost or cancelled."""

    async def playbook(self, playbook: str) -> bytes:
        """Give a canonical tree by its content hash."""

    def follow(self, execution_id: str, after: int = 0) -> AsyncIterator[Event]: ...


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """Python code to run in a child process, as data."""

    code: str
    name: str = "task"  # what tracebacks call it
    variables: Mapping[str, Any] = {}  # the names that the code sees
    input: Mapping[str, Any] = {}  # what `main(...)` is called with
    libs: tuple[tuple[str, str, str], ...] = ()  # (name in the code, module, name in the module or "")


class Ended(msgspec.Struct, frozen=True):
    """How a process ended: its exit code, or minus the signal's number."""

    returncode: int
    stdout: bytes = b""
    stderr: bytes = b""
    cut: bool = False  # it wrote more than is kept


class Children(Protocol):
    """Child processes: they end with the task, with its time-out and with the worker."""

    async def python(self, execution_id: str, job: Job, log: Callable[[str], None]) -> Outcome:
        """Run code in a warm child that serves no other execution; every line that it prints is logged."""

    async def command(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None, stdin: bytes = b""
    ) -> Ended:
        """Run a program in a process group of its own; `env` lies over the worker's. Raises OSError if it cannot start."""


class ToolContext(Protocol):
    """What a tool may touch while it runs one attempt of a task. A cancelled tool must really end its work."""

    execution_id: str
    step: str
    task: str
    attempt: int
    idempotency_key: str
    deadline: int | None  # when the attempt is ended from outside
    input: Mapping[str, Any]  # `args`, the step's and the task's `input`, overlaid
    own: Mapping[str, Any]  # the task's own `input`
    auth: Any  # the task's `auth`, rendered: a name, or a map
    spec: Mapping[str, Any]  # settings by layering
    names: Mapping[str, Any]  # everything in scope but secrets, where code may ask for it
    folder: str  # where relative paths of the playbook start
    children: Children
    blobs: Blobs

    @property
    def http(self) -> Any:
        """The one pooled httpx.AsyncClient of the worker."""

    def now(self) -> int: ...

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the task's log."""

    async def credential(self, name: str) -> Mapping[str, Any]:
        """Resolve a stored credential. Raises KeyError where there is none of that name."""

    async def shared(self, key: str, open: Callable[[], Awaitable[Any]]) -> Any:
        """Give what the worker's tasks share under a key, such as a pool; opened on first use, closed with the worker."""


Runner = Callable[[Mapping[str, Any], ToolContext], Awaitable[Outcome]]


class Tools(Protocol):
    """The tool kinds that can be run."""

    def runner(self, kind: str) -> Runner | None:
        """Give what runs rendered fields of a kind; None where no such kind is run by workers."""
