"""Ports of a worker: control plane, tools, child processes, large results.

Every port has one conformance suite that all of its adapters pass (tests/conformance).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, TypeVar

import msgspec

from noetl.model.messages import Report
from noetl.model.outcome import Outcome
from noetl.model.work import Lease
from noetl.ports.outbox import OutboxIn
from noetl.ports.web import WebClient

if TYPE_CHECKING:
    import asyncio

Result = TypeVar("Result")
Cut = Literal["", "start", "end"]  # the side at which a text was cut before it is masked


class Masked(Protocol):
    """Masks the secrets in a text."""

    def __call__(self, text: str, cut: Cut = "") -> str: ...


def unmasked(text: str, cut: Cut = "") -> str:  # noqa: ARG001 - as Masked
    """Return a text as it is, where no secret is known."""
    return text


class Blobs(Protocol):
    """Large results by reference."""

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None: ...

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes: ...

    async def about(self, ref: str) -> Mapping[str, Any]:
        """Return the `meta` that was stored with a blob."""

    async def delete(self, refs: Sequence[str]) -> None: ...


class BlobStore(Blobs, Protocol):
    """Blob store with operations that remote workers do not have."""

    async def put_file(self, ref: str, file: BinaryIO, meta: Mapping[str, Any]) -> None:
        """Store the content of a file from its start, in pieces, never whole in memory."""

    def stored(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Return the address and `meta` of every blob, in any order.

        Blobs that are put or deleted during the iteration may be included or not.
        """

    async def tidy(self, before: int) -> int:
        """Remove leftovers of unfinished writes begun before a time; return how many."""


class Answer(msgspec.Struct, frozen=True):
    """Applied, duplicate or late; a report gets new work, others the execution's row."""

    status: str = "applied"
    leases: list[Lease] = []
    row: Mapping[str, Any] = {}


Reply = Callable[[Answer | Exception], bool]  # called once; False: the caller is gone, so new work returns to the queue
Deliver = Callable[[list[Lease]], None]
Stop = Callable[[Collection[str]], None]  # with work ids; some may belong to other workers


class Subscription(Protocol):
    """Subscription of a worker to work."""

    def set_capacity(self, capacity: int) -> None:
        """Set how many more work items may be delivered; deliveries count down."""

    def close(self) -> None:
        """Stop all callbacks; work that is leased in the meantime returns to the queue."""


class ControlPlane(Protocol):
    """The server's interface for workers, in process or over a session.

    Tested in tests/conformance/test_control_plane.py.
    """

    def subscribe(self, worker: str, pools: Sequence[str], capacity: int, deliver: Deliver, stop: Stop) -> Subscription:
        """Subscribe to work of these pools, up to the capacity.

        `deliver` is called whenever there is work, `stop` for cancelled work.
        """

    def report(self, execution_id: str, report: Report, want: int, reply: Reply) -> None:
        """Apply a report, and lease up to `want` new work items in the same commit.

        `reply` is called when the commit is durable. A report that is sent again is applied once, and gets the same
        leases.
        """

    async def heartbeat(self, worker: str, held: Sequence[tuple[str, int]]) -> list[str]:
        """Renew leases; returns the work ids that must stop: lost or cancelled."""

    async def playbook(self, playbook: str) -> bytes:
        """Return a canonical tree by its content hash."""


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """Python code to run in a child process, as data."""

    code: str
    name: str = "task"  # what tracebacks call it
    variables: Mapping[str, Any] = {}  # names that the code sees
    input: Mapping[str, Any] = {}  # names that it sees before those, and what `main(...)` is called with
    libs: tuple[tuple[str, str, str], ...] = ()  # (name in the code, module, name in the module or "")
    file: str = ""  # that the code was read from; tracebacks name it
    more: Mapping[str, Any] = {}  # names that it sees before all others


class Ended(msgspec.Struct, frozen=True):
    """How a process ended: its exit code, or minus the signal's number."""

    returncode: int
    stdout: bytes = b""
    stderr: bytes = b""
    cut: bool = False  # the output was truncated
    exceeded: str = ""  # the bound for which it was ended, for people


class Children(Protocol):
    """Child processes, ended with the task, its time-out or the worker."""

    def hint(self, text: str) -> str:
        """Return what to add to an error's text: the setting it is about, or nothing."""

    async def python(
        self, execution_id: str, job: Job, log: Callable[[str], None], masked: Masked = unmasked
    ) -> Outcome:
        """Run code in a warm child of this execution only; every printed line is logged.

        `masked` masks the texts of an error before they are cut.
        """

    async def command(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        stdin: bytes = b"",
        log: Callable[[str, str], None] | None = None,
    ) -> Ended:
        """Run a program in its own process group.

        `env` is merged over the worker's environment. `log` gets every line at once, with a level: `info` for standard
        output, `warning` for standard error. Raises OSError if the program cannot start.
        """


class Walls(Protocol):
    """What tasks that run inside the worker may use."""

    @property
    def is_open(self) -> bool:
        """Whether no sandbox confines them."""

    @property
    def has_network(self) -> bool:
        """Whether a library may open connections that the worker cannot judge."""

    @property
    def memory(self) -> int:
        """Bytes; 0: no limit."""

    @property
    def disk(self) -> int:
        """Bytes of a task's own folder; 0: no limit."""


class OwnThread(Protocol):
    """The thread of one task inside the worker, confined by its sandbox."""

    @property
    def walls(self) -> Walls: ...

    @property
    def folder(self) -> str:
        """Its own folder, removed with it; empty without a sandbox."""

    async def run(self, job: Callable[..., Any], *given: Any, interrupt: Callable[[], None] | None = None) -> Any:
        """Run a job; cancellation calls `interrupt` until the job has ended."""

    def folders(self) -> list[str]:
        """Return the files and folders that a path may name, for libraries that check."""

    def can_serve(self) -> bool:
        """Return whether another task of its execution may use it; empties its folder."""


Confirm = Callable[[Outcome], Awaitable[bool]]


class ToolContext(Protocol):
    """A tool's interface during one attempt. A cancelled tool must end its work."""

    auth: Any  # the task's `auth`, rendered: a name, or a map
    deadline: int | None  # when the attempt is ended from outside
    # Of a claim: records its rows while the transaction is open; it is committed only if this returns True.
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
    def trace(self) -> Mapping[str, str]:
        """Headers with which a request continues the trace of this attempt, if it has one."""

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
        """Everything in scope except secrets, for kinds that run code."""

    @property
    def folder(self) -> str:
        """Where relative paths of the playbook start."""

    @property
    def children(self) -> Children: ...

    def thread(self) -> AbstractAsyncContextManager[OwnThread]:
        """Start a thread for files and libraries that block: every file is opened there."""

    @property
    def blobs(self) -> Blobs: ...

    @property
    def outbox(self) -> OutboxIn | None:
        """Messages for other systems; None if they would not be delivered."""

    def web(self, verify: bool | bytes = True) -> WebClient:
        """Return the worker's HTTP client for a way to verify certificates.

        Bytes are the trusted certificates, as a file in PEM format has them.
        """

    async def addresses(self, host: str, port: int) -> list[str] | None:
        """Return the addresses of a host that the egress rules allow; None: all.

        Raises PermissionError if they allow none, OSError if there is none.
        """

    def now(self) -> int: ...

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the task's log."""

    def masked(self, text: str, cut: Cut = "") -> str:
        """Mask the secrets in a text for people, which must be done before it is cut.

        Where a text is too long for that, `cut` says at which side the caller cut it: what may be half a secret there is
        left out.
        """

    async def credential(self, name: str) -> Mapping[str, Any]:
        """Resolve a stored credential. Raises KeyError if there is none."""

    async def secret(
        self, provider: str, name: str, field: str | None = None, **where: str | None
    ) -> tuple[Any, str | None]:
        """Read a secret from a provider, with the task's `auth`; return value and version.

        `where`: version, project, region, url. The value is masked from now on. Raises CredentialUnavailable.
        """

    async def renewed(self, name: str) -> Mapping[str, Any] | None:
        """Fetch a refused credential again; None if it is not from a token server."""

    async def shared(self, key: str, open: Callable[[], Awaitable[Any]]) -> Any:
        """Return a shared resource by key, opened on first use, closed with the worker."""


# Runs rendered fields of a kind; the runner of a kind that never waits is a plain function.
Runner = Callable[[Mapping[str, Any], ToolContext], Outcome | Awaitable[Outcome]]


async def run_tool(runner: Runner, fields: Mapping[str, Any], context: ToolContext) -> Outcome:
    """Call a runner and await its result if it is awaitable."""
    outcome = runner(fields, context)
    # The first check is much cheaper than the second, which asks an abstract class.
    return await outcome if not isinstance(outcome, Outcome) and isinstance(outcome, Awaitable) else outcome


def resolve(future: asyncio.Future[Result], answer: Result) -> bool:
    """Set the future of a waiting caller; return False if the caller is gone."""
    if future.done():
        return False
    future.set_result(answer)
    return True


class Tools(Protocol):
    """The tool kinds that can be run."""

    def runner(self, kind: str) -> Runner | None:
        """Return the runner of a tool kind; None if workers do not run that kind."""
