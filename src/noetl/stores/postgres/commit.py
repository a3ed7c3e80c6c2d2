"""Commit a batch to PostgreSQL, normally with one statement.

That is one round trip and one transaction. A batch is judged on the facts that it expects and sent with them as guards.
The database applies it if they hold. If not, the facts are read under lock and the batch is judged again on them.
Tested in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.model.commit import Intake, Slot
from noetl.model.errors import Conflict
from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim, Commit, Receipt
from noetl.stores.common.batch import KEPT_RATES_US, Changes, Facts, expected_facts, in_turn, judge, turns
from noetl.stores.common.intake_rows import intake_row
from noetl.stores.common.queries import queries
from noetl.stores.postgres.dead_letters import letter_rows
from noetl.stores.postgres.rows import (
    audit_rows,
    execution_row,
    log_rows,
    message_row,
    number,
    numbered,
    text,
    work_row,
)

if TYPE_CHECKING:
    import asyncpg

    from noetl.stores.postgres.database import PostgresDatabase

_SQL = queries("postgres")
_MOST_TRIES = 5
_LAST = 2**63  # above every id
_CONTRADICTED = ("NL001", "23505")  # a guard failed, or another server inserted the same row first
_work = msgspec.json.Decoder(WorkItem)
_Rows = list[tuple[Any, ...]]


class Claims:
    """Claims of a batch, grouped by the work they ask for.

    New work is assigned to claims in advance. If nothing is queued in the claimed pools, claims get of the batch's own
    work what they would get from the queue; the database checks that.
    """

    def __init__(self, claims: Sequence[Claim], new: Mapping[str, WorkItem] | None = None) -> None:
        self._claims = claims
        self._groups: dict[tuple[Any, ...], list[int]] = {}  # indexes into `claims`
        for index, claim in enumerate(claims):
            if claim.most > 0:
                key = (tuple(dict.fromkeys(claim.pools)), claim.tags, claim.now, claim.until, claim.is_for_idle)
                self._groups.setdefault(key, []).append(index)
        # Only the database can judge the limits of the server.
        may_assign = (
            new and not any(claim.is_for_idle for claim in claims) and not any(item.limits for item in new.values())
        )
        self._assigned = _assign(claims, in_turn(new, turns(new))) if may_assign and new else {}

    def assigned(self, work_id: str) -> Claim | None:
        """Return the claim that gets a new work item if nothing is queued."""
        index = self._assigned.get(work_id)
        return None if index is None else self._claims[index]

    def rows(self) -> str | None:
        """Encode each group of claims as JSON, which is cheaper to send than arrays."""
        rows = [
            {
                "workers": [self._claims[index].worker for index in indexes],
                "pools": pools,
                "tags": tags,
                "now": now,
                "until": until,
                "wanted": [self._claims[index].most for index in indexes],
                **({"limits": limits} if (limits := self._claims[indexes[0]].limits) else {}),
                **({"idle": True} if is_for_idle else {}),
            }
            for (pools, tags, now, until, is_for_idle), indexes in self._groups.items()
        ]
        return text(rows) if rows else None

    def pools(self) -> list[str]:
        """Return the claimed pools if new work is assigned to claims, else none."""
        return list(dict.fromkeys(pool for pools, *_ in self._groups for pool in pools)) if self._assigned else []

    def leases(
        self, rows: Sequence[Sequence[Any]], new: Sequence[Sequence[Any]] | None = None
    ) -> tuple[tuple[Lease, ...], ...]:
        """Distribute rows of leased work to the claims; `new` are rows of new work.

        A row is (group from 1, epoch, attempt, work id, work). Group 0 is work that was inserted as leased. Epochs are
        in the order of the queue.
        """
        found: list[list[Lease]] = [[] for _ in self._claims]
        queued = [row for row in rows if row[0]]
        if len(queued) < len(rows):
            born = {row[3]: row[1] for row in rows if not row[0]}
            texts = {row[0]: row[8] for row in new or ()}
            for work_id, index in self._assigned.items():
                claim = self._claims[index]
                found[index].append(Lease(_work.decode(texts[work_id]), born[work_id], 1, claim.until, claim.worker))
        if queued:
            turns = {group: self._turns(indexes) for group, indexes in enumerate(self._groups.values(), 1)}
            for group, epoch, attempt, _, work in sorted(queued, key=lambda row: row[1]):
                index = next(turns[group])
                claim = self._claims[index]
                found[index].append(Lease(_work.decode(work), epoch, attempt, claim.until, claim.worker))
        return tuple(map(tuple, found))

    def _turns(self, indexes: Sequence[int]) -> Iterator[int]:
        for index in indexes:
            yield from repeat(index, self._claims[index].most)


def _assign(claims: Sequence[Claim], left: list[WorkItem]) -> dict[str, int]:
    """Return the claim of each new item, given in queue order, if no other is queued."""
    assigned: dict[str, int] = {}
    for index, claim in enumerate(claims):
        kept: list[WorkItem] = []
        wanted = claim.most
        for place, item in enumerate(left):
            if wanted <= 0:
                kept += left[place:]
                break
            if item.pool in claim.pools and item.available_at <= claim.now and set(item.requires) <= set(claim.tags):
                assigned[item.work_id] = index
                wanted -= 1
            else:
                kept.append(item)
        left = kept
    return assigned


async def new_writer(database: PostgresDatabase) -> int:
    """Register a writer, return its number; prepares so that the first batch is fast."""
    async with database.connection(apart=True) as connection:
        writer = int(await connection.fetchval(_SQL["new_writer"]))
        await _apply(connection, writer, Facts(), Changes(), Claims(()))
        return writer


async def commit_batch(
    database: PostgresDatabase, writer: int, commits: Sequence[Commit], claims: Sequence[Claim]
) -> Receipt:
    """Apply a batch and serve claims in one transaction."""
    async with database.connection(apart=True) as connection:
        for attempt in range(_MOST_TRIES):
            try:
                if not attempt and not any(commit.slot or commit.intake for commit in commits):
                    receipt = await _commit_expected(connection, writer, commits, claims)
                    if receipt is not None:
                        return receipt
                async with connection.transaction():
                    return await _commit_judged(connection, writer, commits, claims)
            except Exception as error:
                if getattr(error, "sqlstate", None) not in _CONTRADICTED:
                    raise
    raise Conflict("the batch was given up, because other servers kept changing the same executions; send it again")


async def _commit_expected(
    connection: asyncpg.Connection, writer: int, commits: Sequence[Commit], claims: Sequence[Claim]
) -> Receipt | None:
    """Apply an expected batch; None if self-contradictory. Raises if a guard fails."""
    facts = expected_facts(commits)
    for name in facts.last_seqs:
        if number(name) is None:
            facts.last_seqs[name] = 0  # no such execution can exist
    verdicts, changes = judge(commits, facts)
    if any(verdict.status != "applied" for verdict in verdicts):
        return None
    return Receipt(verdicts, await _apply(connection, writer, facts, changes, Claims(claims, changes.work)))


async def _commit_judged(
    connection: asyncpg.Connection, writer: int, commits: Sequence[Commit], claims: Sequence[Claim]
) -> Receipt:
    """Read the facts under lock, and apply what they allow, leasing from the queue."""
    await connection.execute(_SQL["note_change"], writer)  # the order of locks is that of `commit_batch`
    facts = await _read_facts(connection, commits)
    verdicts, changes = judge(commits, facts)
    if changes.rates:
        await connection.execute(_SQL["put_rates"], list(changes.rates), list(changes.rates.values()))
        await connection.execute(_SQL["forget_rates"], min(changes.rates.values()) - KEPT_RATES_US)
    for intake in changes.intakes:
        await connection.execute(_SQL["put_intake"], *intake_row(intake))
        if intake.message_id:
            await connection.execute(_SQL["put_taken"], intake.state_id, intake.message_id, intake.at)
    return Receipt(verdicts, await _apply(connection, writer, facts, changes, Claims(claims)))


async def _read_facts(connection: asyncpg.Connection, commits: Sequence[Commit]) -> Facts:
    """Read what the batch is judged on, and lock it."""
    facts = expected_facts(commits)
    ids = [found for name in facts.last_seqs if (found := number(name)) is not None]
    facts.last_seqs = dict.fromkeys(facts.last_seqs, 0)
    for execution_id, last_seq in await connection.fetch(_SQL["lock_executions"], ids):
        facts.last_seqs[str(execution_id)] = last_seq
    work = [*facts.leases, *(work_id for commit in commits for work_id in commit.dropped)]
    held = {row[0]: row[2] for row in await connection.fetch(_SQL["lock_work"], work) if row[1] == "leased"}
    facts.leases = {work_id: held.get(work_id) for work_id in facts.leases}
    rows = await connection.fetch(_SQL["lock_messages"], list(facts.messages))
    facts.messages = {row[0] for row in rows}
    first = [
        (execution_id, commit.events[0].event_id)
        for commit in commits
        if commit.events and (execution_id := number(commit.execution_id)) is not None
    ]
    rows = await connection.fetch(_SQL["find_events"], [row[0] for row in first], [row[1] for row in first])
    facts.applied = {(str(row[0]), row[1]) for row in rows}
    slots = [commit.slot for commit in commits if commit.slot is not None]
    if slots:
        await _read_limits(connection, slots, facts)
    intakes = [commit.intake for commit in commits if commit.intake is not None]
    if intakes:
        await _read_intakes(connection, intakes, facts)
    return facts


async def _read_intakes(connection: asyncpg.Connection, intakes: Sequence[Intake], facts: Facts) -> None:
    """Read and lock the positions of subscriptions; find messages that were taken in."""
    names = sorted({one.state_id for one in intakes})
    await connection.execute(_SQL["begin_positions"], names)
    revisions = dict(await connection.fetch(_SQL["lock_positions"], names))
    given = [one.state_id for one in intakes], [one.message_id for one in intakes]
    taken = await connection.fetch(_SQL["find_taken"], *given)
    facts.add_positions(revisions, [(row[0], row[1]) for row in taken])


async def _read_limits(connection: asyncpg.Connection, slots: Sequence[Slot], facts: Facts) -> None:
    """Read which executions hold a place, and when the next may begin; lock that."""
    keys = {key for slot in slots for key in (slot.key, slot.above) if key}
    rates = {slot.rate for slot in slots if slot.rate}
    await connection.execute(_SQL["lock_limits"], [*keys, *(f"rate {rate}" for rate in rates)])
    held = await connection.fetch(_SQL["holders"], list(keys))
    turns_of = await connection.fetch(_SQL["turns_of"], list(rates)) if rates else ()
    holders = {key: [row[0] for row in held if key in (row[1], row[2])] for key in keys}
    waited = await connection.fetch(_SQL["waited_keys"], list(keys))
    facts.add_limits(holders, dict(turns_of), [row[0] for row in waited])


async def put_changes(database: PostgresDatabase, writer: int, changes: Changes) -> None:
    """Insert derived rows where there are none."""
    facts = Facts(dict.fromkeys(changes.last_seqs, 0))
    async with database.connection(apart=True) as connection:
        await _apply(connection, writer, facts, changes, Claims(()))


async def _apply(
    connection: asyncpg.Connection, writer: int, facts: Facts, changes: Changes, claims: Claims
) -> tuple[tuple[Lease, ...], ...]:
    """Run the statement, guarded by facts: empty lists as null, locked ones sorted."""
    executions = [
        execution_row(name, seq, changes.last_seqs.get(name, seq), changes.projections.get(name))
        for name, seq in {**dict.fromkeys(changes.last_seqs, 0), **facts.last_seqs}.items()
        if number(name) is not None or name in changes.projections or changes.last_seqs.get(name, seq) != seq
    ]
    if len(executions) > 1:  # new executions stay in the order of the batch
        executions.sort(key=lambda row: row[0] if row[1] else _LAST)
    known = {work_id: epoch for work_id, epoch in facts.leases.items() if epoch is not None}
    leases = {**dict.fromkeys(changes.removed), **known}
    behind = turns(changes.work)
    works = [
        work_row(item, changes.born[name], behind[name], claims.assigned(name)) for name, item in changes.work.items()
    ]
    rows = await connection.fetch(
        _SQL["commit_batch"],
        writer,
        executions,
        [(work_id, leases[work_id], work_id in changes.removed) for work_id in sorted(leases)],
        list(facts.messages & changes.consumed.keys()) or None,
        log_rows(changes.log_parts()) or None,
        works or None,
        claims.pools(),
        claims.rows(),
        *_timer_rows(changes.timers),
        [message_row(*row) for row in changes.messages.values()] or None,
        audit_rows(changes.audit) or None,
        *letter_rows(changes.letters.values()),
    )
    return claims.leases(rows, works)


def _timer_rows(timers: Mapping[tuple[str, str], int | None]) -> tuple[_Rows | None, _Rows | None]:
    """Return the rows of timers to clear, and of timers to set; None if empty."""
    rows = [(numbered(execution_id), name, at) for (execution_id, name), at in timers.items()]
    return [row for row in rows if row[2] is None] or None, [row for row in rows if row[2] is not None] or None
