"""In-memory store for tests and simulations; behaves like the others.

Nothing is kept after the process ends. Values are encoded on the way in and decoded on the way out, so changing an
object never changes a stored fact. Several stores may share their tables, as several processes share a file. Tested in
tests/conformance.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from noetl.audit.chain import with_references
from noetl.model.events import Event
from noetl.model.letters import DeadLetter, LetterChange, changed
from noetl.model.messages import AnyMessage
from noetl.model.work import Lease, Line, WorkItem, distance, playbook_of
from noetl.ports import Audit, Claim, Commit, Position, Receipt, Selection
from noetl.ports.log import OPEN, Recent, SavedState, Timing
from noetl.ports.triggers import Progress
from noetl.stores.common.batch import Changes, Facts, about, judge, lost, slot_columns, turns
from noetl.stores.common.work_limits import Room
from noetl.stores.memory.catalog import MemoryCatalog
from noetl.stores.memory.dead_letters import MemoryLetters
from noetl.stores.memory.tables import Row, Tables

_encode = msgspec.json.encode
_event = msgspec.json.Decoder(Event)
_message = msgspec.json.Decoder(AnyMessage)
_letter = msgspec.json.Decoder(DeadLetter)


class MemoryStore(MemoryCatalog, MemoryLetters):
    """Event log, work queue, catalog and dead letters in memory."""

    def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt | Awaitable[Receipt]:
        verdicts, changes = judge(commits, _read_facts(self.tables, commits))
        apply(self.tables, changes)
        self._count()
        return Receipt(verdicts, tuple(tuple(_claim(self.tables, claim)) for claim in claims))

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        log = self.tables.logs.get(execution_id, [])
        return [_event.decode(text) for text in log[after : None if limit is None else after + limit]]

    async def save_snapshot(self, execution_id: str, seq: int, version: int, state: bytes) -> None:
        known = self.tables.snapshots.get(execution_id)
        if known is None or seq >= known[0] or version != known[1]:
            self.tables.snapshots[execution_id] = (seq, version, state)

    async def saved_states(self, execution_ids: Sequence[str], version: int, limit: int) -> list[SavedState]:
        found = []
        for execution_id in execution_ids:
            known = self.tables.snapshots.get(execution_id)
            snapshot = (known[0], known[2]) if known is not None and known[1] == version else None
            events = await self.read(execution_id, 0 if snapshot is None else snapshot[0], limit)
            found.append(SavedState(execution_id, snapshot, events))
        return found

    async def execution(self, execution_id: str) -> Mapping[str, Any] | None:
        row = self.tables.executions.get(execution_id)
        if row is None:
            return None
        return {
            **msgspec.json.decode(row),
            "execution_id": execution_id,
            "last_seq": self.tables.last_seq(execution_id),
        }

    async def executions(self, selection: Selection) -> list[Mapping[str, Any]]:
        ids = list(self.tables.executions)
        if selection.before is not None:
            ids = ids[: ids.index(selection.before)] if selection.before in self.tables.executions else []
        if selection.back_to is not None:
            ids = ids[ids.index(selection.back_to) :] if selection.back_to in ids else []
        rows = (row for row in [await self.execution(name) for name in reversed(ids)] if row is not None)
        return list(islice((row for row in rows if _matches(row, selection)), selection.limit))

    async def open_counts(self, most: int, within: tuple[str, ...] | None = None) -> Mapping[str, int]:
        open_ones = {name: Selection(status=(name,), within=within, limit=most) for name in OPEN}
        return {name: len(await self.executions(selection)) for name, selection in open_ones.items()}

    async def recent_counts(
        self, since: int, bucket_ms: int, most: int, within: tuple[str, ...] | None = None
    ) -> Recent:
        rows = await self.executions(Selection(limit=most + 1))
        counts: dict[tuple[int, str], int] = {}
        for row in rows[:most]:
            if row["started_at"] >= since and (within is None or str(row.get("path", "")).startswith(within)):
                key = ((row["started_at"] - since) // bucket_ms, str(row["status"]))
                counts[key] = counts.get(key, 0) + 1
        return Recent(counts, len(rows) <= most or rows[most]["started_at"] < since)

    async def durations(self, path: str, most: int) -> list[int]:
        rows = await self.executions(Selection(path=path, status=("completed",), limit=most))
        return [int(row["ended_at"] - row["started_at"]) for row in rows]

    async def timings(self, selection: Selection) -> list[Timing]:
        rows = await self.executions(selection)
        times = ((row.get("started_at", 0), row.get("ended_at")) for row in rows)
        names = ((row["execution_id"], row.get("path", ""), row["status"]) for row in rows)
        return [Timing(*name, *time) for name, time in zip(names, times, strict=True)]

    async def remove(self, execution_id: str, act: Audit = None) -> bool:
        row = await self.execution(execution_id)
        if row is None or row.get("ended_at") is None:
            return False
        tables = self.tables
        tables.note([with_references(act, f"seq {row['last_seq']}")])
        del tables.executions[execution_id]
        tables.logs.pop(execution_id, None)
        tables.snapshots.pop(execution_id, None)
        tables.event_ids -= {key for key in tables.event_ids if key[0] == execution_id}
        tables.feed = {seq: place for seq, place in tables.feed.items() if place[0] != execution_id}
        tables.queue = {key: work for key, work in tables.queue.items() if work.execution_id != execution_id}
        tables.timers = {key: at for key, at in tables.timers.items() if key[0] != execution_id}
        tables.keys = {key: kept for key, kept in tables.keys.items() if kept[0] != execution_id}
        tables.messages = {key: found for key, found in tables.messages.items() if found[0] != execution_id}
        tables.letters = {key: row for key, row in tables.letters.items() if key.partition("-")[0] != execution_id}
        self._count()
        return True

    async def writers(self) -> Mapping[str, int]:
        return {self.tables.writer_id: self.tables.written} if self.tables.written else {}

    async def feed(
        self,
        after: Mapping[str, int],
        most: int,
        wanted: Collection[str] | None = None,  # noqa: ARG002  events are in memory
    ) -> list[Position]:
        tables = self.tables
        start = after.get(tables.writer_id, 0)
        seqs = [seq for seq in range(start + 1, tables.written + 1) if seq in tables.feed][:most]
        found = [(seq, *tables.feed[seq]) for seq in seqs]
        return [Position(tables.writer_id, seq, _event.decode(tables.logs[log][index])) for seq, log, index in found]

    async def probe(self) -> None: ...

    async def version(self) -> int:
        return self.tables.commits - self._own

    async def close(self) -> None:
        """Keep the tables: other stores may share them."""

    async def claim(
        self, worker: str, pools: Sequence[str], most: int, now: int, until: int, tags: Sequence[str] = ()
    ) -> list[Lease]:
        self._count()
        return _claim(self.tables, Claim(worker, tuple(pools), most, now, until, tuple(tags)))

    async def extend(self, worker: str, held: Sequence[tuple[str, int]], until: int) -> list[str]:
        gone = []
        for work_id, epoch in held:
            row = self.tables.queue.get(work_id)
            if row is None or (row.state, row.epoch, row.worker) != ("leased", epoch, worker):
                gone.append(work_id)
            else:
                row.until = max(row.until, until)
        return gone

    async def expired(self, now: int, max_attempts: int, since: int = 0) -> list[tuple[Lease, bool]]:
        rows = [row for row in self.tables.queue.items() if row[1].state == "leased" and since <= row[1].until <= now]
        found = []
        for _, row in sorted(rows, key=lambda row: (row[1].until, row[0])):
            lease, exhausted = row.lease(), row.attempt >= max_attempts
            row.state, row.worker, row.until, row.rank = "dead" if exhausted else "queued", "", 0, -1
            message = lost(lease, exhausted)
            self.tables.messages.setdefault(message.message_id, (lease.work.execution_id, _encode(message)))
            found.append((lease, exhausted))
        if found:
            self._count()
        return found

    async def expire(self, execution_id: str, now: int) -> int:
        rows = [row for row in self.tables.queue.values() if row.state == "leased" and row.execution_id == execution_id]
        for row in rows:
            row.until = now
        return len(rows)

    async def abandon(self, worker: str, held: Sequence[tuple[str, int]], now: int, until: int) -> int:
        return self._expire_leases(worker, now, lambda key, row: key in held and row.until <= until)

    async def disown(self, worker: str, held: Sequence[tuple[str, int]], now: int) -> int:
        return self._expire_leases(worker, now, lambda key, _: key not in held)

    def _expire_leases(self, worker: str, now: int, which: Callable[[tuple[str, int], Row], bool]) -> int:
        leased = [
            (name, row) for name, row in self.tables.queue.items() if (row.state, row.worker) == ("leased", worker)
        ]
        rows = [row for name, row in leased if which((name, row.epoch), row)]
        for row in rows:
            row.until = now
        return len(rows)

    async def leased(self, worker: str, until: int) -> list[tuple[str, int]]:
        rows = self.tables.queue.items()
        return [
            (name, row.epoch) for name, row in rows if (row.state, row.worker, row.until) == ("leased", worker, until)
        ]

    async def release(self, held: Sequence[tuple[str, int]], now: int) -> None:
        for work_id, epoch in held:
            row = self.tables.queue.get(work_id)
            if row is not None and (row.state, row.epoch) == ("leased", epoch):
                row.state, row.worker, row.until, row.attempt = "queued", "", 0, row.attempt - 1
                row.available_at, row.rank = min(row.available_at, now), -1
        self._count()

    async def age(self, now: int, before: int) -> int:
        queued = [row for row in self.tables.queue.values() if row.state == "queued"]
        highest = {
            pool: max(row.priority for row in queued if row.pool == pool) for pool in {row.pool for row in queued}
        }
        old = [
            row
            for row in queued
            if row.created_at <= before and row.available_at <= now and row.priority < highest[row.pool]
        ]
        for row in old:
            row.priority += 1
        return len(old)

    async def queued_keys(self) -> list[str]:
        slots = [slot_columns(msgspec.json.decode(text)) for text in self.tables.executions.values()]
        return sorted({key for key, queued, _ in slots if queued and key is not None})

    async def queued(self, key: str, most: int) -> list[Mapping[str, Any]]:
        rows = [await self.execution(name) for name in _with_slot(self.tables, key, queued=True)[:most]]
        return [row for row in rows if row is not None]

    async def holders(self, key: str) -> list[str]:
        return _with_slot(self.tables, key, queued=False)

    async def line(self, execution_id: str) -> Line:
        queued = [row for row in self.tables.queue.values() if row.state == "queued"]
        ready = [row for row in queued if row.available_at == 0]
        work = {
            name: sum(_order(other) < _order(row) for other in ready if other.pool == row.pool)
            for name, row in self.tables.queue.items()
            if row.state == "queued" and row.execution_id == execution_id
        }
        limits = {name: self.tables.queue[name].limits for name in work if self.tables.queue[name].limits}
        key, waits, _ = slot_columns(await self.execution(execution_id) or {})
        if key is None or not waits:
            return Line(work, limits=limits)
        position = _with_slot(self.tables, key, queued=True).index(execution_id) + 1
        return Line(work, key, position, tuple(await self.holders(key)), limits)

    async def turn_at(self, rate: str) -> int:
        return self.tables.rates.get(rate, 0)

    async def due(self, now: int, most: int, civil: int | None = None) -> list[tuple[str, str, int]]:
        by_day = now if civil is None else civil
        timers = self.tables.timers.items()
        found = [(at, key) for key, at in timers if at <= (by_day if key[1].startswith("until:") else now)]
        return [(key[0], key[1], at) for at, key in sorted(found)[:most]]

    async def next_time(self, now: int) -> int | None:
        queue = self.tables.queue.values()
        leases = [row.until for row in queue if row.state == "leased"]
        later = [row.available_at for row in queue if row.state == "queued" and row.available_at > 0]
        return min((at for at in (*self.tables.timers.values(), *leases, *later) if at > now), default=None)

    async def inbox(self, most: int) -> list[tuple[str, AnyMessage]]:
        found = list(self.tables.messages.values())[:most]
        return [(execution_id, _message.decode(text)) for execution_id, text in found]


def _read_facts(tables: Tables, commits: Sequence[Commit]) -> Facts:
    facts = Facts()
    for commit in commits:
        facts.last_seqs[commit.execution_id] = tables.last_seq(commit.execution_id)
        facts.leases |= {work_id: tables.lease(work_id) for work_id, _ in (*commit.finished, *commit.held)}
        facts.applied |= tables.event_ids & {(commit.execution_id, event.event_id) for event in commit.events[:1]}
        facts.messages |= tables.messages.keys() & set(commit.consumed)
        if commit.slot is not None:
            keys = (commit.slot.key, commit.slot.above)
            holders = {key: _with_slot(tables, key, queued=False) for key in keys}
            facts.add_limits(holders, tables.rates, [key for key in keys if _is_waited_for(tables, key)])
        if commit.intake is not None:
            name, message_id = commit.intake.state_id, commit.intake.message_id
            taken = [(name, message_id)] if message_id in tables.taken.get(name, {}) else []
            facts.add_positions({name: tables.progress.get(name, Progress()).revision}, taken)
    return facts


def _with_slot(tables: Tables, key: str, *, queued: bool) -> list[str]:
    rows = [(name, slot_columns(msgspec.json.decode(text))) for name, text in tables.executions.items()]
    if queued:
        return [name for name, slot in rows if slot[:2] == (key, True)]
    return [name for name, (own, waits, above) in rows if not waits and key in (own, above)]


def _is_waited_for(tables: Tables, key: str) -> bool:
    rows = (msgspec.json.decode(tables.executions[name]) for name in _with_slot(tables, key, queued=True))
    return any(row["status"] != "paused" for row in rows)


def apply(tables: Tables, changes: Changes) -> None:
    """Write a batch atomically: encoding comes first, nothing after it can fail."""
    events = [(event, _encode(event)) for event in changes.events]
    projections = {key: _encode(row) for key, row in changes.projections.items()}
    work = {key: _encode(item) for key, item in changes.work.items()}
    messages = {key: (found, _encode(message)) for key, (found, message) in changes.messages.items()}
    letters = _letters(tables, changes.letters.values()) if changes.letters else {}
    tables.note(changes.audit)
    tables.letters.update(letters)
    for event, text in events:
        log = tables.logs.setdefault(event.execution_id, [])
        tables.written += 1
        tables.feed[tables.written] = (event.execution_id, len(log))
        log.append(text)
        tables.event_ids.add((event.execution_id, event.event_id))
    for execution_id, seq in changes.last_seqs.items():
        if seq:
            tables.executions.setdefault(execution_id, b"{}")
    tables.executions.update(projections)
    for work_id in changes.removed:
        tables.queue.pop(work_id, None)
    behind = turns(changes.work)
    ranks = {work_id: _next_rank(tables, item) + behind[work_id] for work_id, item in changes.work.items()}
    for work_id, item in changes.work.items():
        _put(tables, item, work[work_id], changes.born[work_id], ranks[work_id])
    for key, at in changes.timers.items():
        if at is None:
            tables.timers.pop(key, None)
        else:
            tables.timers[key] = at
    tables.rates.update(changes.rates)
    for intake in changes.intakes:
        tables.take_in(intake)
    for message_id in changes.consumed:
        tables.messages.pop(message_id, None)
    for message_id, row in messages.items():
        tables.messages.setdefault(message_id, row)


def _letters(tables: Tables, changes: Iterable[LetterChange]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for change in changes:
        text = tables.letters.get(change.message_id)
        letter = changed(None if text is None else _letter.decode(text), change)
        if letter is not None:
            found[letter.message_id] = _encode(letter)
    return found


def _put(tables: Tables, item: WorkItem, text: bytes, born: int, rank: int) -> None:
    row = tables.queue.get(item.work_id)
    if row is None:
        tables.number += 1
        row = tables.queue[item.work_id] = Row(tables.number, item.execution_id, born, flow=item.flow, rank=rank)
    row.work, row.pool, row.priority, row.available_at = text, item.pool, item.priority, item.available_at
    row.requires, row.limits = frozenset(item.requires), item.limits


def _next_rank(tables: Tables, item: WorkItem) -> int:
    """Return the rank behind the flow's last item, not before the first of its pool."""
    alike = [row for row in tables.queue.values() if (row.state, row.priority) == ("queued", item.priority)]
    others = [row.rank for row in alike if row.rank >= 0]
    first = min([row.rank for row in alike if row.rank >= 0 and row.pool == item.pool] or others or [0])
    return max([0, first, *(row.rank + distance(item) for row in alike if row.flow == item.flow)])


def _order(row: Row) -> tuple[int, int, int]:
    return (-row.priority, row.rank, row.number)


def _claim(tables: Tables, claim: Claim) -> list[Lease]:
    rows = [
        row
        for row in tables.queue.values()
        if row.state == "queued"
        and row.available_at <= claim.now
        and row.pool in claim.pools
        and row.requires.issubset(claim.tags)
    ]
    leases: list[Lease] = []
    leased = [row for row in tables.queue.values() if row.state == "leased"]
    room, busy = Room(claim.limits, [row.limits for row in leased]), {playbook_of(row.flow) for row in leased}
    for row in sorted(rows, key=_order):
        if len(leases) >= max(claim.most, 0):
            break
        if (claim.is_for_idle and playbook_of(row.flow) in busy) or not room.take(row.limits):
            continue
        busy.add(playbook_of(row.flow))
        tables.epoch += 1
        row.state, row.epoch, row.attempt = "leased", tables.epoch, row.attempt + 1
        row.worker, row.until = claim.worker, claim.until
        leases.append(row.lease())
    return leases


def _matches(row: Mapping[str, Any], selection: Selection) -> bool:
    path, parent, tags, started_at = about(row)
    message = (row.get("error") or {}).get("message", "")
    texts = (row["execution_id"], path, *tags, message)
    return (
        (not selection.status or row.get("status", "pending") in selection.status)
        and selection.path in (None, path)
        and (selection.prefix is None or path.startswith(selection.prefix))
        and (selection.ids is None or row["execution_id"] in selection.ids)
        and (
            selection.needs_signal is None
            or (row.get("status") in OPEN and row.get("needs_signal", False) is selection.needs_signal)
        )
        and (selection.within is None or path.startswith(selection.within))
        and selection.parent in (None, parent or "")
        and (selection.tag is None or selection.tag in tags)
        and selection.without not in tags
        and (selection.text is None or any(selection.text.lower() in text.lower() for text in texts))
        and (selection.since is None or started_at >= selection.since)
        and (selection.until is None or started_at < selection.until)
    )
