"""Ports of a store: event log, work queue, catalog and doorbell.

The docstrings are the specification. Every adapter passes the port's suite in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Generator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from noetl.model.commit import Commit
from noetl.model.events import Event
from noetl.model.messages import AnyMessage
from noetl.model.work import Lease, Line
from noetl.ports.team import Audit


class Clock(Protocol):
    """Current time in milliseconds since the epoch, and sleep."""

    def now(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...


class CivilClock(Clock, Protocol):
    """Clock of a server, which knows the system clock too."""

    def civil(self) -> int:
        """Return the time of day, which follows a system clock that is set."""

    @property
    def report(self) -> str:
        """`ok`, or how the system clock differs."""


class Committed(msgspec.Struct, frozen=True):
    """Verdict on one commit; only an applied commit changed anything.

    `stale`: the log's last seq is not the expected one. `duplicate`: its message was applied before. `fenced`: a lease
    that it names is not held with that epoch. `full`: no place is free under the limits of its slot. `passed`: the
    position or the message of its intake was taken in before.
    """

    execution_id: str
    status: str  # applied, stale, duplicate, fenced, full, passed
    last_seq: int  # of the log after the batch
    why: str = ""  # of `full`: limit, above or rate


class Claim(msgspec.Struct, frozen=True):
    """Request for up to `most` work items of some pools, leased until a time."""

    worker: str
    pools: tuple[str, ...]
    most: int
    now: int
    until: int
    tags: tuple[str, ...] = ()  # tags of the worker; it gets no work that requires a tag outside of them
    limits: Mapping[str, int] = {}  # of the server: how much work that names one of them may be leased at once
    is_for_idle: bool = False  # only work of playbooks that have none leased: one item of each


class Receipt(msgspec.Struct, frozen=True):
    """Result of a batch: a verdict per commit and leases per claim, in order.

    A receipt is awaitable and returns itself, so `await log.commit(…)` works with every store.
    """

    commits: tuple[Committed, ...]
    leases: tuple[tuple[Lease, ...], ...] = ()

    def __await__(self) -> Generator[Any, None, Receipt]:
        """Return itself, so that `await log.commit(…)` works with every store."""
        yield from ()
        return self


OPEN = ("pending", "running", "waiting", "paused")  # statuses of executions that have not ended


class Selection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Filter for listing executions; unset fields do not filter."""

    status: tuple[str, ...] = ()  # one of these
    path: str | None = None
    prefix: str | None = None  # its path begins so
    ids: tuple[str, ...] | None = None  # one of these
    needs_signal: bool | None = None  # of executions that have not ended: whether one waits for a signal
    text: str | None = None  # substring of its id, path, tags or error message; ASCII letters match in either case
    tag: str | None = None
    without: str | None = None  # not those with this tag
    parent: str | None = None  # children of this execution; empty: executions without a parent
    since: int | None = None  # started at this time or later
    until: int | None = None  # started before this time
    before: str | None = None  # older than this execution, the last one of the previous page
    back_to: str | None = None  # not older than this execution
    limit: int = 50
    within: tuple[str, ...] | None = None  # in one of these namespaces: its path begins with one


class Recent(msgspec.Struct, frozen=True):
    """Number of recent executions by bucket of their start and by status."""

    counts: Mapping[tuple[int, str], int]  # (bucket from 0, status)
    is_whole: bool  # all that started since then were counted


class Timing(msgspec.Struct, frozen=True):
    """When an execution began and ended."""

    execution_id: str
    path: str
    status: str
    started_at: int
    ended_at: int | None


class SavedState(msgspec.Struct, frozen=True):
    """The snapshot of an execution and a page of its events after it."""

    execution_id: str
    snapshot: tuple[int, bytes] | None  # seq and state
    events: list[Event]


class Position(msgspec.Struct, frozen=True):
    """Event with its position in the stream of its writer."""

    writer_id: str
    writer_seq: int
    event: Event


class EventLog(Protocol):
    """Append-only log, and the tables that are committed together with it.

    Every event has a position in the stream of its writer. A writer is a party that commits serially: one server, or a
    SQLite file, whose lock one process holds at a time. `writer_seq` grows in the order of the commits, and an event is
    never visible before all earlier events of its stream.
    """

    def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt | Awaitable[Receipt]:
        """Apply a batch of commits and serve claims, all in one transaction.

        Commits are judged one by one, in order; a commit that does not apply leaves the others alone. Claims are served
        after the commits, so new work can be leased in the transaction that creates it. Work that was queued before has
        precedence over it.

        Returns a receipt if the batch is durable on return, otherwise an awaitable of one, which must be awaited. After an
        error or a cancellation it is unknown whether the batch was written: it was, whole, or not at all.
        """

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        """Return the events with a seq above `after`, in order, at most `limit`."""

    async def save_snapshot(self, execution_id: str, seq: int, version: int, state: bytes) -> None:
        """Store a snapshot, unless there is one of the same version with a higher seq."""

    async def saved_states(self, execution_ids: Sequence[str], version: int, limit: int) -> list[SavedState]:
        """Return what makes the state of each execution, in their order.

        Snapshots are those of a version; of the events after them, each has at most `limit`.
        """

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None:
        """Return the last projection with `execution_id` and `last_seq`."""

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]:
        """List executions, newest first, as `execution` returns them."""

    async def open_counts(self, most: int, within: tuple[str, ...] | None = None) -> Mapping[str, int]:
        """Count executions that have not ended by status, each up to `most`."""

    async def recent_counts(
        self, since: int, bucket_ms: int, most: int, within: tuple[str, ...] | None = None
    ) -> Recent:
        """Count executions by the time of their start and their status.

        Looks at the newest `most` executions only, so the cost does not grow with the store. Children count too.
        """

    async def durations(self, path: str, most: int) -> list[int]:
        """Return the durations of a path's newest `most` completed executions in ms."""

    async def timings(self, selection: Selection) -> list[Timing]:
        """List executions as `executions` does, but only when they began and ended."""

    async def remove(self, execution_id: str, act: Audit = None) -> bool:
        """Delete an ended execution: its log and all its rows, but not its stored results.

        Returns False if it has not ended or does not exist. Its events leave the feed; no `writer_seq` is reused.
        """

    async def writers(self) -> Mapping[str, int]:
        """Return the last `writer_seq` of every writer: the position after everything."""

    async def feed(self, after: Mapping[str, int], most: int, wanted: Collection[str] | None = None) -> list[Position]:
        """Return events of all executions after a position, each stream in order.

        A position is {writer_id: writer_seq}. A writer that the position does not name is read from its start. A reader
        that continues from the last `writer_seq` it got of each writer misses no event, sees none twice, and never
        waits for a writer.

        If types of events are `wanted`, others may be left out, except the last event that was looked at of each stream,
        so that the position advances.
        """

    async def version(self) -> int:
        """Return a number that changes when another process has committed to the store."""

    async def probe(self) -> None:
        """Write and commit something without meaning. Raises StoreUnavailable."""

    async def close(self) -> None: ...


class WorkQueue(Protocol):
    """Queued work and its leases.

    Order: higher priority first. In one priority flows take turns by their weights, whatever each of them has queued: new
    work ranks behind the last of its flow, but not before the first in the queue. Then age. Work whose lease ended comes
    back first. Every lease has an epoch that no other lease of the store has, so a report on a lost lease is always recognized.
    """

    async def claim(
        self, worker: str, pools: Sequence[str], most: int, now: int, until: int, tags: Sequence[str] = ()
    ) -> list[Lease]:
        """Lease queued work to a worker, as a claim of `EventLog.commit` does."""

    async def extend(self, worker: str, held: Sequence[tuple[str, int]], until: int) -> list[str]:
        """Extend leases; return the work ids that the worker no longer holds."""

    async def expired(self, now: int, max_attempts: int, since: int = 0) -> list[tuple[Lease, bool]]:
        """Take back expired leases and put a `LeaseLost` message for each into the inbox.

        The work is queued again, or dead if it has no delivery left (True). Leases that expired before `since` stay.
        """

    async def expire(self, execution_id: str, now: int) -> int:
        """Expire an execution's leases now; return how many. For dead workers only."""

    async def abandon(self, worker: str, held: Sequence[tuple[str, int]], now: int, until: int) -> int:
        """Expire leases of a worker now; return how many it held.

        For workers that are known to be gone. A lease that was extended beyond `until` stays: the worker came back,
        here or at another server.
        """

    async def disown(self, worker: str, held: Sequence[tuple[str, int]], now: int) -> int:
        """Expire every lease of a worker except those in `held`; return how many."""

    async def leased(self, worker: str, until: int) -> list[tuple[str, int]]:
        """Return (work_id, epoch) of the worker's leases that expire at exactly this time."""

    async def release(self, held: Sequence[tuple[str, int]], now: int) -> None:
        """Queue unstarted work again without counting the delivery."""

    async def age(self, now: int, before: int) -> int:
        """Raise by 1 the priority of due work created before a time; return how much.

        It rises only up to the highest priority that is queued in its pool.
        """

    async def queued_keys(self) -> list[str]:
        """List the keys for which executions wait, see `Slot`."""

    async def queued(self, key: str, most: int) -> list[Mapping[str, Any]]:
        """List the executions that wait for a key, oldest first, as `execution` does."""

    async def holders(self, key: str) -> list[str]:
        """List the executions that began with a key and have not ended, oldest first."""

    async def line(self, execution_id: str) -> Line:
        """Return where an execution and its queued work stand."""

    async def turn_at(self, rate: str) -> int:
        """Return when the next execution of a rate may begin, in microseconds."""

    async def due(self, now: int, most: int, civil: int | None = None) -> list[tuple[str, str, int]]:
        """Return due (execution_id, timer_id, at), earliest first; a commit clears them.

        Timers named `until:…` wait for a point of civil time and are due by `civil`, the time of day, if it is given.
        """

    async def next_time(self, now: int) -> int | None:
        """Return the next time after `now` at which something is due.

        That is a timer, the expiry of a lease, or delayed work that becomes available.
        """

    async def inbox(self, most: int) -> list[tuple[str, AnyMessage]]:
        """Return (execution_id, message) of unconsumed system messages, oldest first."""


class Catalog(Protocol):
    """Playbooks by path and version, and canonical trees by content hash."""

    async def register(
        self,
        path: str,
        content: bytes,
        canonical: bytes,
        playbook: str,
        now: int,
        act: Audit = None,
        expected: int | None = None,
    ) -> int:
        """Add a version and return its number; the latest one if its content is the same.

        Raises Conflict if the latest version is not the `expected` one; 0: there is none.
        """

    async def canonical(self, playbook: str) -> bytes | None:
        """Return a canonical tree by its content hash."""

    async def canonicals(self, playbooks: Sequence[str]) -> dict[str, bytes]:
        """Return canonical trees by content hash; unknown ones are left out."""

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None:
        """Return a version, by default the latest.

        Its fields: path, version, playbook, content, registered_at.
        """

    async def content_hash(self, path: str, version: int | None = None) -> str | None:
        """Return the content hash of a version (default: latest) without the content."""

    async def entries(
        self, text: str | None, after: str | None, limit: int, within: Sequence[str] | None = None
    ) -> list[Mapping[str, Any]]:
        """List paths in order, each with its latest version; `within` namespaces.

        The fields of an entry: path, latest version, playbook, registered_at, number of versions. `text` is a substring
        of the path, ASCII letters in either case; `after` is the last path of the previous page.
        """

    async def versions(self, path: str) -> list[Mapping[str, Any]]:
        """List versions, newest first: path, version, playbook, registered_at."""

    async def unregister(self, path: str, version: int | None = None, act: Audit = None) -> int:
        """Remove one version, or all versions of a path; return how many.

        No version number is reused. Canonical trees stay: executions are pinned to them.
        """


class Doorbell(Protocol):
    """Wake-up signal between processes; a lost one delays work and loses none."""

    def ring(self) -> None:
        """Wake the other processes soon; never waits and never fails."""

    async def heard(self, within_s: float) -> bool:
        """Wait up to a timeout for a signal; return whether one came."""

    async def close(self) -> None: ...


class History(Protocol):
    """Read access to executions and their playbooks: a local store or a server."""

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None: ...

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]: ...

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...

    async def canonical(self, playbook: str) -> bytes | None: ...

    async def versions(self, path: str) -> list[Mapping[str, Any]]: ...

    async def line(self, execution_id: str) -> Line: ...

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None: ...
