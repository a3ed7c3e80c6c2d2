"""The event log and the queue: what is committed together, and what a worker may lease of it.

Every port has one conformance suite that all of its adapters pass (tests/conformance).
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Generator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from noetl.model.commit import Commit
from noetl.model.events import Event
from noetl.model.messages import AnyMessage
from noetl.model.work import Lease
from noetl.ports.team import Act


class Clock(Protocol):
    """The time, and the wait for it."""

    def now(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...


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
    tags: tuple[str, ...] = ()  # what the worker has; work that requires another is not for it


class Receipt(msgspec.Struct, frozen=True):
    """What became of a batch: one entry per commit, and one list of leases per claim."""

    commits: tuple[Committed, ...]
    leases: tuple[tuple[Lease, ...], ...] = ()

    def __await__(self) -> Generator[Any, None, Receipt]:
        """Return itself, so that `await log.commit(…)` works whether or not the log has to be waited for."""
        yield from ()
        return self


class Selection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which executions to list; what is left out does not narrow."""

    status: tuple[str, ...] = ()  # one of these
    path: str | None = None
    text: str | None = (
        None  # somewhere in its id, path, tags or the message of its error; in either case of ASCII letters
    )
    tag: str | None = None
    parent: str | None = None  # children of this execution
    since: int | None = None  # started at this time or later
    until: int | None = None  # started before this time
    before: str | None = None  # older than this execution: where the last page ended
    limit: int = 50


class Position(msgspec.Struct, frozen=True):
    """An event, and where it stands in the stream of whoever wrote it."""

    writer_id: str
    writer_seq: int
    event: Event


class EventLog(Protocol):
    """The append-only log with everything that is committed beside it.

    Every event also has a place in the stream of its writer: `writer_seq` counts up in the order of the commits, and an
    event is never seen before all that come ahead of it in its stream. Whoever commits serially is a writer: one server,
    or a file whose lock only one process holds.
    """

    def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt | Awaitable[Receipt]:
        """Apply a batch in one transaction, then serve the claims in it, so that new work is born leased.

        Returns the receipt where the commit is done already, else an awaitable of it. Commits are judged one by one, in
        order; one that does not apply leaves the others alone.
        """

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...

    async def save_snapshot(self, execution_id: str, seq: int, version: int, state: bytes) -> None: ...

    async def snapshot(self, execution_id: str, version: int) -> tuple[int, bytes] | None: ...

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None: ...

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]:
        """List executions, newest first."""

    async def remove(self, execution_id: str, act: Act = None) -> bool:
        """Remove an ended execution: its log, and everything that is kept beside it but for results by reference.

        False where it has not ended, or is not there. Its events leave the feed; no `writer_seq` is given twice.
        """

    async def writers(self) -> Mapping[str, int]:
        """Give the `writer_seq` of the last event of every writer: the position of whoever has seen everything."""

    async def feed(self, after: Mapping[str, int], most: int, wanted: Collection[str] | None = None) -> list[Position]:
        """Give events of all executions after a position, {writer_id: writer_seq}, each stream in its order.

        Where types of events are `wanted`, others may be left out; the last one of each stream that was looked at is given
        whatever it is, so that the position moves along.
        A writer that the position does not name is read from its start. Whoever goes on from the last `writer_seq` that
        he was given of each writer misses nothing, sees nothing twice and waits for nobody.
        """

    async def version(self) -> int:
        """Give a number that changes when somebody else has committed to the same store."""

    async def close(self) -> None: ...


class WorkQueue(Protocol):
    """Work that waits, and the leases on it. Order: priority (higher first), then age.

    Every lease has an epoch that no other lease of the store ever had, so a report on a lost lease cannot pass for another.
    """

    async def claim(
        self, worker: str, pools: Sequence[str], most: int, now: int, until: int, tags: Sequence[str] = ()
    ) -> list[Lease]: ...

    async def extend(self, worker: str, held: Sequence[tuple[str, int]], until: int) -> list[str]:
        """Keep leases alive; gives the work ids that are no longer held."""

    async def expired(self, now: int, max_attempts: int) -> list[tuple[Lease, bool]]:
        """Take expired leases back, with a `LeaseLost` message for each in the inbox.

        The work is queued again, or dead where no delivery is left (True).
        """

    async def expire(self, execution_id: str, now: int) -> int:
        """Let every lease of an execution run out now, because whoever held them is known to be dead; gives how many."""

    async def abandon(self, worker: str, held: Sequence[tuple[str, int]], now: int, until: int) -> int:
        """Let leases of a worker run out now, because it is known to be gone; gives how many were its own.

        One that was kept alive beyond `until` stays: it came back, here or at another server.
        """

    async def disown(self, worker: str, held: Sequence[tuple[str, int]], now: int) -> int:
        """Let every lease of a worker run out now that is not among those it holds; gives how many there were."""

    async def leased(self, worker: str, until: int) -> list[tuple[str, int]]:
        """Give the leases of a worker that run until exactly this time, by work id and epoch."""

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

    async def register(
        self, path: str, content: bytes, canonical: bytes, playbook: str, now: int, act: Act = None
    ) -> int: ...

    async def canonical(self, playbook: str) -> bytes | None: ...

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None: ...

    async def content_hash(self, path: str, version: int | None = None) -> str | None:
        """Give the content hash of a version, the newest of its path where none is named, without its content."""

    async def entries(self, text: str | None, after: str | None, limit: int) -> list[Mapping[str, Any]]:
        """List paths in order: path, the latest version, playbook, registered_at, and how many versions there are.

        `text` is somewhere in the path, in either case of ASCII letters; `after` is the path where the last page ended.
        """

    async def versions(self, path: str) -> list[Mapping[str, Any]]:
        """List the versions of a path, newest first: path, version, playbook, registered_at."""

    async def unregister(self, path: str, version: int | None = None, act: Act = None) -> int:
        """Take a version out of the catalog, or all of a path; gives how many. No number is given again.

        Canonical trees stay: executions are pinned to them.
        """


class Doorbell(Protocol):
    """Says "look now" to whoever shares the store. Nothing is wrong where it is not heard, only later."""

    def ring(self) -> None:
        """Tell the others, soon; never waits and never fails."""

    async def heard(self, within_s: float) -> bool:
        """Wait until another rings, at most that long; gives whether one did."""

    async def close(self) -> None: ...


class History(Protocol):
    """What looking at executions takes; a log and a catalog have it, and so has a server."""

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None: ...

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]: ...

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...

    async def canonical(self, playbook: str) -> bytes | None: ...
