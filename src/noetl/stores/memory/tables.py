"""Tables in memory that stores may share. Tested in tests/conformance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct, field

from noetl.audit.chain import Chained, Head, digest_of, extend
from noetl.model.commit import Intake
from noetl.model.work import Lease, WorkItem
from noetl.ports import AuditEntry, Token, WorkerInfo
from noetl.ports.keychain import SealedToken
from noetl.ports.outbox import OutboxMessage
from noetl.ports.people import Group, Session, User
from noetl.ports.schedules import Firing, Schedule
from noetl.ports.team import DataKey
from noetl.ports.triggers import Progress, StoredTrigger

_work = msgspec.json.Decoder(WorkItem)


class Row(Struct):
    """Work item in the queue."""

    number: int
    execution_id: str
    created_at: int
    work: bytes = b""
    pool: str = ""
    requires: frozenset[str] = frozenset()
    limits: tuple[str, ...] = ()
    priority: int = 0
    flow: str = ""
    rank: int = 0
    available_at: int = 0
    state: str = "queued"
    epoch: int = 0
    attempt: int = 0
    worker: str = ""
    until: int = 0

    def lease(self) -> Lease:
        return Lease(_work.decode(self.work), self.epoch, self.attempt, self.until, self.worker)


class Tables(Struct):
    """Everything that a store holds."""

    logs: dict[str, list[bytes]] = {}
    event_ids: set[tuple[str, str]] = set()
    feed: dict[int, tuple[str, int]] = {}  # writer_seq → execution and index in its log
    written: int = 0  # the last writer_seq
    executions: dict[str, bytes] = {}
    queue: dict[str, Row] = {}
    timers: dict[tuple[str, str], int] = {}
    messages: dict[str, tuple[str, bytes]] = {}
    snapshots: dict[str, tuple[int, int, bytes]] = {}
    canonical: dict[str, bytes] = {}
    catalog: dict[str, list[dict[str, Any]]] = {}
    workers: dict[str, WorkerInfo] = {}
    tokens: dict[str, Token] = {}
    credentials: dict[str, dict[str, Any]] = {}
    data_keys: dict[str, DataKey] = {}
    access_tokens: dict[str, tuple[SealedToken, str, int]] = {}  # by key: token, holder, until
    keys: dict[str, tuple[str, int]] = {}  # of requests → execution, at
    audit: list[Chained] = []
    audit_head: Head = Head()
    users: dict[str, User] = {}
    groups: dict[str, Group] = {}
    sessions: dict[str, Session] = {}  # by digest
    outbox: dict[int, OutboxMessage] = {}  # by number
    outbox_number: int = 0
    schedules: dict[str, Schedule] = {}
    triggers: dict[tuple[str, str], StoredTrigger] = {}  # by kind and id
    positions: dict[str, tuple[dict[str, int], int]] = {}  # of readers of the feed, with their revisions
    progress: dict[str, Progress] = {}  # of subscriptions, by state id
    taken: dict[str, dict[str, int]] = {}  # by state id: messages that were taken in, and when they were last seen
    firings: dict[tuple[str, int], Firing] = {}  # by schedule and time
    duties: dict[str, tuple[str, int]] = {}  # name → holder, until
    letters: dict[str, bytes] = {}
    rates: dict[str, int] = {}  # when the next execution may begin, in microseconds
    writer_id: str = field(default_factory=lambda: uuid4().hex[:16])
    number: int = 0  # of rows of the queue
    epoch: int = 0
    commits: int = 0

    def note(self, entries: Iterable[AuditEntry | None]) -> None:
        """Append entries to the audit trail, skipping None."""
        for entry in entries:
            if entry is not None:
                detail = msgspec.json.decode(msgspec.json.encode(entry.detail))
                made = msgspec.structs.replace(entry, detail=detail, number=len(self.audit) + 1)
                chained, self.audit_head = extend(self.audit_head, [(made, digest_of(made))])
                self.audit += chained

    def take_in(self, intake: Intake) -> None:
        """Write the intake of a commit."""
        known, is_message = self.progress.get(intake.state_id, Progress()), bool(intake.shown)
        self.progress[intake.state_id] = msgspec.structs.replace(
            known,
            position=msgspec.json.decode(msgspec.json.encode(intake.position)),
            revision=intake.revision + 1,
            received=known.received + (is_message and not intake.is_poisoned),
            poisoned=known.poisoned + intake.is_poisoned,
            last_message=intake.shown or known.last_message,
            last_at=intake.at if is_message else known.last_at,
        )
        if intake.message_id:
            self.taken.setdefault(intake.state_id, {})[intake.message_id] = intake.at

    def last_seq(self, execution_id: str) -> int:
        return len(self.logs.get(execution_id, ()))

    def lease(self, work_id: str) -> int | None:
        row = self.queue.get(work_id)
        return row.epoch if row is not None and row.state == "leased" else None
