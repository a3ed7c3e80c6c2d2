"""Judges a batch of commits and folds the applied ones into their net effect.

All stores share it, so stale, duplicate and fenced mean the same in each. Does no I/O: a store passes in the facts that a
verdict depends on. Tested in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noetl.model.commit import Intake, Slot
from noetl.model.events import Event
from noetl.model.letters import DeadLetter, LetterChange, changed
from noetl.model.messages import AnyMessage, LeaseLost
from noetl.model.work import Lease, WorkItem, distance
from noetl.ports import AuditEntry, Commit, Committed, DerivedRows

ALL = 2**31  # a limit that no list of rows reaches
SKIPPED_EPOCHS = 2**32  # by a restore: more than a lost history can have used
KEPT_RATES_US = 3_600_000_000  # how long a rate is kept after its next execution might have begun
MOST_EVENTS = 500  # in one row of the log, so that reading a page decodes two rows at most


class Facts(Struct):
    """What a batch depends on, as the store holds it before the batch."""

    last_seqs: dict[str, int] = {}  # by execution
    leases: dict[str, int | None] = {}  # epochs by work id; None: not leased
    applied: set[tuple[str, str]] = set()  # (execution, first event id) of messages that were applied before
    messages: set[str] = set()  # in the inbox
    holders: dict[str, set[str]] = {}  # executions that began with a key and have not ended
    rates: dict[str, int] = {}  # by key: when the next execution may begin, in microseconds
    waited: set[str] = set()  # keys for whose places older executions wait that may be admitted
    revisions: dict[str, int] = {}  # of the positions of subscriptions, by state id
    taken: set[tuple[str, str]] = set()  # (state id, message id) of messages that were taken in before

    def add_limits(
        self, holders: Mapping[str, Iterable[str]], rates: Mapping[str, int], waited: Iterable[str] = ()
    ) -> None:
        """Add what the limits of the batch's executions depend on."""
        self.holders |= {key: set(ids) for key, ids in holders.items()}
        self.rates |= rates
        self.waited.update(waited)

    def add_positions(self, revisions: Mapping[str, int], taken: Iterable[tuple[str, str]]) -> None:
        """Add what the intakes of the batch depend on."""
        self.revisions |= revisions
        self.taken.update(taken)


class Changes(Struct):
    """Net effect of a batch. Removals precede additions: work may return as new."""

    logs: list[tuple[Event, ...]] = []  # the events of each commit
    last_seqs: dict[str, int] = {}
    projections: dict[str, Mapping[str, Any]] = {}
    removed: dict[str, None] = {}  # work ids
    work: dict[str, WorkItem] = {}
    born: dict[str, int] = {}  # creation time of work: the timestamp of the events that created it
    timers: dict[tuple[str, str], int | None] = {}  # None: cleared
    consumed: dict[str, None] = {}
    messages: dict[str, tuple[str, AnyMessage]] = {}
    audit: list[AuditEntry] = []
    letters: dict[str, LetterChange] = {}  # the net change of each
    rates: dict[str, int] = {}  # when the next execution may begin, in microseconds
    intakes: list[Intake] = []  # messages of subscriptions, in order

    @property
    def events(self) -> list[Event]:
        return [event for log in self.logs for event in log]

    def log_parts(self) -> list[tuple[Event, ...]]:
        """Split the events into rows: one per commit, more if it has too many events."""
        return [log[first : first + MOST_EVENTS] for log in self.logs for first in range(0, len(log), MOST_EVENTS)]


def expected_facts(commits: Sequence[Commit]) -> Facts:
    """Return the facts on which every commit of a batch applies."""
    facts = Facts()
    for commit in commits:
        facts.last_seqs.setdefault(commit.execution_id, commit.expected_seq)
        for work_id, epoch in (*commit.finished, *commit.held):
            facts.leases.setdefault(work_id, epoch)
        facts.messages.update(commit.consumed)
    return facts


def judge(commits: Sequence[Commit], facts: Facts) -> tuple[tuple[Committed, ...], Changes]:
    """Return the verdict on each commit, and what the applied ones change together."""
    changes = Changes()
    verdicts = []
    last_seqs, applied = dict(facts.last_seqs), set(facts.applied)  # as they are after the commits so far
    holders = {key: set(ids) for key, ids in facts.holders.items()}
    waited = set(facts.waited)
    refused: set[str] = set()  # executions with a refused commit: later commits in the batch build on it
    for commit in commits:
        execution_id, events = commit.execution_id, commit.events
        last = last_seqs[execution_id]
        # Events of another writer may have the numbers of the refused ones, so comparing numbers is not enough.
        if execution_id in refused or commit.expected_seq != last:
            status = "stale"
        # Event ids derive from the message, and a message that changed anything has a first event.
        elif events and (execution_id, events[0].event_id) in applied:
            status = "duplicate"
        else:
            status = _status(commit, changes, facts)
        if status == "applied" and commit.intake is not None and not _is_new(commit.intake, changes, facts):
            status = "passed"
        why = ""
        if status == "applied" and commit.slot is not None:
            is_new = commit.expected_seq == 0
            why = _behind(commit.slot) if is_new and commit.slot.key in waited else ""
            why = why or _take(commit.slot, commit, holders, changes, facts)
            status = "full" if why else status
            if why:
                waited.add(commit.slot.key)
        if status == "applied":
            if holders and "ended_at" in commit.projection:
                for ids in holders.values():
                    ids.discard(execution_id)
            if events:
                last = last_seqs[execution_id] = last + len(events)
                applied.add((execution_id, events[0].event_id))
            _fold(commit, last, changes)
            if commit.intake is not None:
                changes.intakes.append(commit.intake)
        elif events:
            refused.add(execution_id)
        verdicts.append(Committed(execution_id, status, last, why))
    return tuple(verdicts), changes


def _status(commit: Commit, changes: Changes, facts: Facts) -> str:
    for message_id in commit.consumed:
        if message_id in changes.consumed or message_id not in facts.messages:
            return "duplicate"
    for work_id, epoch in (*commit.finished, *commit.held) if commit.held else commit.finished:
        if work_id in changes.removed or facts.leases[work_id] != epoch:
            return "fenced"
    return "applied"


def _behind(slot: Slot) -> str:
    """Return the limit for which a new execution waits, behind older ones."""
    return "limit" if slot.limit else "rate"


def _take(slot: Slot, commit: Commit, holders: dict[str, set[str]], changes: Changes, facts: Facts) -> str:
    """Take a place under the limits of an execution; return which of them is reached."""
    own = {commit.execution_id}
    held, above = holders.setdefault(slot.key, set()), holders.setdefault(slot.above, set())
    if slot.limit and len(held - own) >= slot.limit:
        return "limit"
    if slot.above and len(above - own) >= slot.above_limit:
        return "above"
    if slot.interval_us:
        now = slot.at * 1000
        turn = max(changes.rates.get(slot.rate, facts.rates.get(slot.rate, 0)), now)
        if turn - (slot.burst - 1) * slot.interval_us > now:
            return "rate"
        changes.rates[slot.rate] = turn + slot.interval_us
    held.update(own)
    above.update(own)
    return ""


def _is_new(intake: Intake, changes: Changes, facts: Facts) -> bool:
    """Return whether no one has taken in the message or moved the position."""
    earlier = [one for one in changes.intakes if one.state_id == intake.state_id]
    if intake.revision != facts.revisions.get(intake.state_id, 0) + len(earlier):
        return False
    is_taken = (intake.state_id, intake.message_id) in facts.taken
    return not intake.message_id or not (is_taken or any(one.message_id == intake.message_id for one in earlier))


def _fold(commit: Commit, last: int, changes: Changes) -> None:
    execution_id, events = commit.execution_id, commit.events
    if not changes.last_seqs.get(execution_id):
        changes.last_seqs.pop(execution_id, None)  # new executions stay in the order of their first events
    changes.last_seqs[execution_id] = last
    if events:
        changes.logs.append(events)
    if commit.projection and not commit.has_same_row:
        changes.projections[execution_id] = commit.projection
    for work_id in (*[one for one, _ in commit.finished], *commit.dropped):
        changes.removed[work_id] = None
        changes.work.pop(work_id, None)
    for item in commit.work:
        changes.work[item.work_id] = item
        changes.born[item.work_id] = events[-1].timestamp if events else 0
    for timer_id in commit.cleared:
        changes.timers[execution_id, timer_id] = None
    for timer_id, at in commit.timers:
        changes.timers[execution_id, timer_id] = at
    for message_id in commit.consumed:
        changes.consumed[message_id] = None
    if commit.audit:
        was = f"seq {commit.expected_seq}" if commit.expected_seq else ""
        changes.audit += [replace(entry, before=was, after=f"seq {last}") for entry in commit.audit]
    for change in commit.letters:
        _add_letter(changes, change)
    for other, message in commit.inbox:
        changes.messages[message.message_id] = (other, message)


def _add_letter(changes: Changes, change: LetterChange) -> None:
    earlier = changes.letters.get(change.message_id)
    letter = changed(earlier.letter, change) if earlier is not None else None
    changes.letters[change.message_id] = change if letter is None else replace(change, letter=letter)


def changes_of(rows: Sequence[DerivedRows]) -> Changes:
    """Return derived rows as the changes of a batch without events."""
    changes = Changes()
    for row in rows:
        changes.last_seqs[row.execution_id] = row.last_seq
        changes.projections[row.execution_id] = row.projection
        for since, item in row.work:
            changes.work[item.work_id] = item
            changes.born[item.work_id] = since
        changes.timers.update({(row.execution_id, name): at for name, at in row.timers})
        changes.messages.update({message.message_id: (to, message) for to, message in row.inbox})
        for one in row.letters:
            _add_letter(changes, LetterChange(one.message_id, one.status, one.last_seen, one))
    return changes


def turns(work: Mapping[str, WorkItem]) -> dict[str, int]:
    """Return how far the rank of each new work item is behind its flow's first."""
    if len(work) == 1:
        return dict.fromkeys(work, 0)
    last: dict[tuple[int, str], int] = {}
    found = {}
    for work_id, item in work.items():
        flow = (item.priority, item.flow)
        found[work_id] = last[flow] = last[flow] + distance(item) if flow in last else 0
    return found


def in_turn(work: Mapping[str, WorkItem], behind: Mapping[str, int]) -> list[WorkItem]:
    """Return new work in the order of the queue: by priority, and flows take turns."""
    return sorted(work.values(), key=lambda item: (-item.priority, behind[item.work_id]))


def by_id(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """Sort dead letters by id."""
    return sorted(letters, key=lambda letter: letter.message_id)


def slot_columns(projection: Mapping[str, Any]) -> tuple[str | None, bool, str | None]:
    """Return the key under which an execution counts or waits, and whether it waits.

    Then the key of a limit of the server under which it counts too.
    """
    slot = projection.get("slot")
    if slot is None or "ended_at" in projection:
        return (None, False, None)
    above = slot.get("above")
    return (slot["group"], bool(slot.get("queued")), None if above is None else above["group"])


def about(projection: Mapping[str, Any]) -> tuple[str, str | None, list[str], int]:
    """Return the immutable fields of a projection: path, parent, tags, started_at."""
    return (
        str(projection.get("path", "")),
        projection.get("parent"),
        list(projection.get("tags", ())),
        int(projection.get("started_at", 0)),
    )


def lost(lease: Lease, exhausted: bool) -> LeaseLost:
    """Return the message that an expired lease sends to its execution."""
    work = lease.work
    chunk = None if work.chunk is None else work.chunk.chunk_id
    return LeaseLost(f"lease:{work.work_id}:{lease.epoch}", work.run_id, lease.epoch, chunk, exhausted, lease.attempt)
