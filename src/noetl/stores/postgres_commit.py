"""Commits a batch to PostgreSQL: one statement in the normal case, so one round trip and one transaction.

A batch is judged on what it expects the database to hold, and sent with these expectations; the database applies it if
they are true. Where one is not, the facts are read under lock and the batch is judged again on them. Either way the
judgement is the one that all stores share. Tested by tests/conformance.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from noetl.model.errors import Conflict
from noetl.ports import Claim, Commit, Receipt
from noetl.stores.batch import Changes, judge
from noetl.stores.letters_postgres import letter_columns
from noetl.stores.postgres_claims import Claims
from noetl.stores.postgres_rows import audit_columns, execution_row, log_rows, message_row, number, numbered, work_row
from noetl.stores.postgres_step import commit_step, prepare_step
from noetl.stores.queries import queries
from noetl.stores.steps import Written, next_holder

if TYPE_CHECKING:
    import asyncpg

    from noetl.stores.postgres_database import PostgresDatabase

_SQL = queries("postgres")
_MOST_TRIES = 5
_WORKS = 5  # its place among the parameters
_LAST = 2**63  # above every id
_CONTRADICTED = ("NL001", "23505")  # the batch was judged on other facts; somebody inserted the same row first


class Expected:
    """What a batch expects the database to hold, and what is true of it as far as it is known."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self.last_seqs: dict[str, int] = {}
        self.leases: dict[str, int | None] = {}
        self.events: set[tuple[str, str]] = set()
        self.messages: set[str] = set()
        for commit in commits:
            self.last_seqs.setdefault(commit.execution_id, commit.expected_seq)
            for work_id, epoch in (*commit.finished, *commit.held):
                self.leases.setdefault(work_id, epoch)
            self.messages.update(commit.consumed)
            if number(commit.execution_id) is None:
                self.last_seqs[commit.execution_id] = 0  # no such execution can be there

    def last_seq(self, execution_id: str) -> int:
        return self.last_seqs[execution_id]

    def has_event(self, execution_id: str, event_id: str) -> bool:
        return (execution_id, event_id) in self.events

    def has_message(self, message_id: str) -> bool:
        return message_id in self.messages

    def lease(self, work_id: str) -> int | None:
        return self.leases[work_id]


async def new_writer(database: PostgresDatabase) -> int:
    """Give the number of a new writer; what its batches need is prepared, so that the first is not slower."""
    async with database.connection(apart=True) as connection:
        writer = int(await connection.fetchval(_SQL["new_writer"]))
        await connection.fetch(_SQL["commit_batch"], *_parameters(writer, Expected(()), Changes(), Claims(())))
        await prepare_step(connection)
        return writer


async def commit_batch(
    database: PostgresDatabase, writer: int, written: Written, commits: Sequence[Commit], claims: Sequence[Claim]
) -> Receipt:
    """Apply a batch and serve claims in one transaction."""
    import asyncpg

    place = next_holder(commits[0], claims) if len(commits) == 1 and written.says(commits[0]) else None
    if place is not None:
        async with database.connection(apart=True) as connection:
            try:
                receipt = await commit_step(connection, writer, commits[0], claims, place)
            except asyncpg.PostgresError as error:
                if error.sqlstate not in _CONTRADICTED:
                    raise
                receipt = None
        if receipt is not None:
            written.took(commits)
            return receipt
    expected = Expected(commits)
    verdicts, changes = judge(commits, expected)
    asked = Claims(claims, changes.work.values())
    given = _parameters(writer, expected, changes, asked, asked.pools(), written.unchanged(expected.last_seqs, changes))
    plain = all(verdict.status == "applied" for verdict in verdicts)
    async with database.connection(apart=True) as connection:
        for attempt in range(_MOST_TRIES):
            try:
                if plain and not attempt:
                    rows = await _commit(connection, given, changes)
                    written.note(changes)
                    return Receipt(verdicts, asked.leases(rows, given[_WORKS] or ()))
                async with connection.transaction():
                    return await _commit_on_facts(connection, writer, commits, claims)
            except asyncpg.PostgresError as error:
                if error.sqlstate not in _CONTRADICTED:
                    raise
    raise Conflict("other servers change the same executions all the time; the batch was given up")


async def _commit(connection: asyncpg.Connection, given: tuple[Any, ...], changes: Changes) -> list[Any]:
    if changes.audit or changes.letters:
        beside = (*audit_columns(changes.audit), *letter_columns(changes.letters.values()))
        return list(await connection.fetch(_SQL["commit_noted_batch"], *given, *beside))
    return list(await connection.fetch(_SQL["commit_batch"], *given))


async def put_changes(database: PostgresDatabase, writer: int, changes: Changes) -> None:
    """Put rows in where nothing is."""
    expected = Expected(())
    expected.last_seqs = dict.fromkeys(changes.last_seqs, 0)
    async with database.connection(apart=True) as connection:
        await _commit(connection, _parameters(writer, expected, changes, Claims(())), changes)


async def _commit_on_facts(
    connection: asyncpg.Connection, writer: int, commits: Sequence[Commit], claims: Sequence[Claim]
) -> Receipt:
    await connection.execute(_SQL["note_change"], writer)  # locks are taken in the order that `commit_batch` keeps to
    facts = await _facts(connection, commits)
    verdicts, changes = judge(commits, facts)
    asked = Claims(claims)
    rows = await _commit(connection, _parameters(writer, facts, changes, asked), changes)
    return Receipt(verdicts, asked.leases(rows))


async def _facts(connection: asyncpg.Connection, commits: Sequence[Commit]) -> Expected:
    """Read what the judgement asks for, and keep others from changing it."""
    facts = Expected(commits)
    ids = [found for name in facts.last_seqs if (found := number(name)) is not None]
    facts.last_seqs = dict.fromkeys(facts.last_seqs, 0)
    for execution_id, last_seq in await connection.fetch(_SQL["lock_executions"], ids):
        facts.last_seqs[str(execution_id)] = last_seq
    work = [*facts.leases, *(work_id for commit in commits for work_id in commit.dropped)]
    held = {row[0]: row[2] for row in await connection.fetch(_SQL["lock_work"], work) if row[1] == "leased"}
    facts.leases = {work_id: held.get(work_id) for work_id in facts.leases}
    found = await connection.fetch(_SQL["lock_messages"], list(facts.messages))
    facts.messages = {row[0] for row in found}
    first = [
        (one, commit.events[0].event_id)
        for commit in commits
        if commit.events and (one := number(commit.execution_id)) is not None
    ]
    rows = await connection.fetch(_SQL["find_events"], [row[0] for row in first], [row[1] for row in first])
    facts.events = {(str(row[0]), row[1]) for row in rows}
    return facts


def _parameters(
    writer: int,
    expected: Expected,
    changes: Changes,
    asked: Claims,
    pools: Sequence[str] = (),
    unchanged: Collection[str] = (),
) -> tuple[Any, ...]:
    """Give what the statement takes, in its order; what it locks is sorted."""
    executions = [
        execution_row(
            name, seq, changes.last_seqs.get(name, seq), None if name in unchanged else changes.projections.get(name)
        )
        for name, seq in expected.last_seqs.items()
        if number(name) is not None or name in changes.projections or changes.last_seqs.get(name, seq) != seq
    ]
    executions.sort(key=lambda row: row[0] if row[1] else _LAST)  # new ones in the order in which they came
    known = {name: epoch for name, epoch in expected.leases.items() if epoch is not None}
    leases = {**dict.fromkeys(changes.removed), **known}
    timers = [(numbered(key[0]), key[1], at) for key, at in changes.timers.items()]
    works = [work_row(item, changes.born[item.work_id], asked.meant(item.work_id)) for item in changes.work.values()]
    return (
        writer,
        executions,
        [(name, leases[name], name in changes.removed) for name in sorted(leases)],
        list(expected.messages & changes.consumed.keys()) or None,
        log_rows(changes.logs) or None,
        works or None,  # nothing is quicker to say than that a list is empty
        pools,
        asked.rows() or None,
        [row for row in timers if row[2] is None] or None,
        [row for row in timers if row[2] is not None] or None,
        [message_row(*row) for row in changes.messages.values()] or None,
    )
