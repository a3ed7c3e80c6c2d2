"""What a worker works with: the control plane, tools, child processes and large results.

Every port has one conformance suite that all of its adapters pass (tests/conformance).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, BinaryIO, Protocol

import msgspec

from noetl.model.messages import Report
from noetl.model.outcome import Outcome
from noetl.model.work import Lease
from noetl.ports.outbox import OutboxIn


class Blobs(Protocol):
    """Large results by reference."""

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None: ...

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes: ...

    async def about(self, ref: str) -> Mapping[str, Any]:
        """Return what was put with a blob as its `meta`."""

    async def delete(self, refs: Sequence[str]) -> None: ...


class BlobStore(Blobs, Protocol):
    """Large results where they are kept: what a worker elsewhere cannot ask for."""

    async def put_file(self, ref: str, file: BinaryIO, meta: Mapping[str, Any]) -> None:
        """Put what a file holds from its start, piece by piece: it is never held whole."""

    def stored(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Return every blob's address and `meta`, in any order; what is put or deleted meanwhile may be among them or not."""

    async def tidy(self, before: int) -> int:
        """Remove what is left of writes that began before a time and never ended; returns how much there was."""


class Answer(msgspec.Struct, frozen=True):
    """What a message came to: applied, duplicate or late; new work for a report, the execution's row for other messages."""

    status: str = "applied"
    leases: list[Lease] = []
    row: Mapping[str, Any] = {}


Reply = Callable[[Answer | Exception], bool]  # called once; False: the caller is gone, so new work returns to the queue
Deliver = Callable[[list[Lease]], None]
Stop = Callable[[Collection[str]], None]  # with work ids, of which some may not be the worker's


class Subscription(Protocol):
    """A worker's standing request for work."""

    def set_capacity(self, capacity: int) -> None:
        """Set how many more pieces of work may be delivered; every delivery takes its number off."""

    def close(self) -> None:
        """Deliver nothing and stop nothing any more; what was leased meanwhile returns to the queue."""


class ControlPlane(Protocol):
    """What a worker asks of the server, in process or over a session.

    Tested in tests/conformance/test_control_plane.py.
    """

    def subscribe(self, worker: str, pools: Sequence[str], capacity: int, deliver: Deliver, stop: Stop) -> Subscription:
        """Deliver work of these pools whenever there is some, up to the capacity; call `stop` for cancelled work."""

    def report(self, execution_id: str, report: Report, want: int, reply: Reply) -> None:
        """Apply a report, with up to `want` pieces of new work in the same commit; `reply` is called when it is durable.

        A report that is sent again is applied once, and gets the same leases.
        """

    async def heartbeat(self, worker: str, held: Sequence[tuple[str, int]]) -> list[str]:
        """Renew leases; returns the work ids that must stop: lost or cancelled."""

    async def playbook(self, playbook: str) -> bytes:
        """Return a canonical tree by its content hash."""


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


Confirm = Callable[[Outcome], Awaitable[bool]]


class ToolContext(Protocol):
    """What a tool may touch while it runs one attempt of a task. A cancelled tool must really end its work."""

    auth: Any  # the task's `auth`, rendered: a name, or a map
    deadline: int | None  # when the attempt is ended from outside
    # Of a claim: what it gives is recorded while the transaction is open; it is committed only where this tells so.
    confirm: Confirm | None

    @property
    def execution_id(self) -> str: ...

    @property
    def step(self) -> str: ...

    @property
    def task(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def idempotency_key(self) -> str: ...

    @property
    def input(self) -> Mapping[str, Any]:
        """`args`, the step's and the task's `input`, overlaid."""

    @property
    def own(self) -> Mapping[str, Any]:
        """The task's own `input`."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """Settings by layering."""

    @property
    def names(self) -> Mapping[str, Any]:
        """Everything in scope but secrets, where code may ask for it."""

    @property
    def folder(self) -> str:
        """Where relative paths of the playbook start."""

    @property
    def children(self) -> Children: ...

    @property
    def blobs(self) -> Blobs: ...

    @property
    def outbox(self) -> OutboxIn | None:
        """Messages for other systems; None where they would not be delivered."""

    @property
    def http(self) -> Any:
        """The one pooled httpx.AsyncClient of the worker."""

    def web(self, verify: bool | str) -> Any:
        """Return the worker's httpx.AsyncClient that checks certificates this way: a text is a file with trusted ones."""

    def now(self) -> int: ...

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the task's log."""

    async def credential(self, name: str) -> Mapping[str, Any]:
        """Resolve a stored credential. Raises KeyError where there is none of that name."""

    async def renewed(self, name: str) -> Mapping[str, Any] | None:
        """Return a credential anew after the other side refused it; None where it is no token that a server gives."""

    async def shared(self, key: str, open: Callable[[], Awaitable[Any]]) -> Any:
        """Return what the worker's tasks share under a key, such as a pool; opened on first use, closed with the worker."""


# Runs rendered fields of a kind; the runner of a kind that never waits is a plain function.
Runner = Callable[[Mapping[str, Any], ToolContext], Outcome | Awaitable[Outcome]]


async def run_tool(runner: Runner, fields: Mapping[str, Any], context: ToolContext) -> Outcome:
    """Call a runner, and wait for it if it has to be waited for."""
    outcome = runner(fields, context)
    return await outcome if isinstance(outcome, Awaitable) else outcome


class Tools(Protocol):
    """The tool kinds that can be run."""

    def runner(self, kind: str) -> Runner | None:
        """Return what runs rendered fields of a kind; None where no such kind is run by workers."""
