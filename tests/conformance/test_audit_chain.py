"""Hash chain of the audit trail on every store, and rows that were tampered with."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import psycopg
import pytest

from noetl.audit.chain import START
from noetl.model.errors import InvalidInput
from noetl.ports import AuditEntry, Token
from noetl.ports.outbox import OutboxMessage
from noetl.ports.schedules import Schedule
from noetl.schedules.spec import ScheduleSpec
from noetl.server.operations.audit import verify_trail
from noetl.stores.postgres.store import PostgresStore
from tests.conformance.commits import commit
from tests.conformance.conftest import Place, Store, Team

pytestmark = pytest.mark.asyncio
STORED = pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)


def entry(at: int, **more: object) -> AuditEntry:
    return AuditEntry(at, "ada", "thing.change", "e1", {"b": at, "a": {"y": 1.5, "x": None}}, **more)  # type: ignore[arg-type]


async def link_all(team: Team) -> None:
    while await team.link(3):
        pass


async def reason(team: Team) -> tuple[str, int, int | None]:
    found = await verify_trail(team)
    assert found.broken is not None
    assert not found.is_intact
    return found.broken.reason, found.broken.position, found.broken.number


async def test_entries_of_changes_and_commits_are_one_chain(store: Store, team: Team) -> None:
    assert (await verify_trail(team)).is_intact
    await team.audit([entry(1), entry(2)])
    await store.commit([commit(audit=(entry(3),)), commit("2", audit=(entry(4),))])
    await team.add_token(Token("t1", "digest", "viewer"), entry(5))
    await link_all(team)
    found = await verify_trail(team)
    assert (found.is_intact, found.entries, found.pending) == (True, 5, 0)
    chain = await team.chain(0, 10)
    assert [one.entry.at for one in chain] == [1, 2, 3, 4, 5]
    assert chain[0].previous == START
    assert [one.previous for one in chain[1:]] == [one.hash for one in chain[:-1]]
    assert (await team.audit_head()).hash == chain[-1].hash
    assert [one.entry.at for one in await team.chain(2, 2)] == [3, 4]
    assert await team.unlinked(0, 10) == []


async def test_an_entry_refers_to_what_was_and_what_is(place: Place, store: Store, team: Team) -> None:
    outbox, schedules = place.outbox(store), place.schedules(store)
    await store.commit([commit(audit=(entry(1),))])
    await store.commit([commit(at=1, count=2, audit=(entry(2),))])
    await store.register("a/b", b"1", b"{}", "hash1", 1, entry(3))
    await store.register("a/b", b"2", b"{}", "hash2", 1, entry(4))
    await store.unregister("a/b", None, entry(5))
    await team.put_credential("pg", "generic", b"s", {}, 1, entry(6))
    await team.put_credential("pg", "generic", b"s", {}, 1, entry(7))
    await team.delete_credential("pg", entry(8))
    number = await outbox.put(OutboxMessage("k", available_at=2**50), 100)
    await outbox.discard(number, "enough", entry(9))
    made = Schedule("s", "a/b", ScheduleSpec(every=60))
    await schedules.add(made, entry(10))
    kept = await schedules.schedule("s")
    assert kept is not None
    await schedules.save(kept, (), entry(11))
    await schedules.remove("s", entry(12))
    found = {one.at: (one.before, one.after) for one in await team.audited()}
    assert found == {
        1: ("", "seq 1"),
        2: ("seq 1", "seq 3"),
        3: ("", "version 1 hash1"),
        4: ("version 1 hash1", "version 2 hash2"),
        5: ("version 2 hash2", ""),
        6: ("", "version 1"),
        7: ("version 1", "version 2"),
        8: ("version 2", ""),
        9: ("pending", "discarded"),
        10: ("", "revision 1"),
        11: ("revision 1", "revision 2"),
        12: ("revision 2", ""),
    }


async def test_several_servers_make_one_chain(place: Place) -> None:
    teams = [place.team(place.open()) for _ in range(3)]

    async def write(team: Team, first: int) -> None:
        for at in range(first, first + 20):
            await team.audit([entry(at)])
            await team.link(5)

    await asyncio.gather(*(write(team, 100 * at) for at, team in enumerate(teams)))
    await link_all(teams[0])
    found = await verify_trail(teams[1])
    assert (found.is_intact, found.entries) == (True, 60)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
async def test_an_entry_that_commits_late_is_linked_late(place: Place) -> None:
    """Transactions do not wait for each other: numbers and commits differ in order."""
    store = place.open()
    assert isinstance(store, PostgresStore)
    team = place.team(store)
    async with store.database.transaction() as connection:
        await store.database.note(connection, entry(1))
        await team.audit([entry(2)])
        assert await team.link(10) == 1
    assert await team.link(10) == 1
    assert [one.entry.at for one in await team.chain(0, 10)] == [2, 1]
    assert (await verify_trail(team)).is_intact


def execute(place: Place, *statements: str) -> None:
    """Run statements on the database of a store, not through NoETL."""
    if place.kind == "sqlite":
        with closing(sqlite3.connect(place.path)) as file, file:
            for sql in statements:
                file.execute(sql)
        return
    with psycopg.connect(place.address, autocommit=True) as server:
        for sql in ("SET search_path = noetl", *statements):
            server.execute(sql.encode())


TAMPERED: dict[str, tuple[tuple[str, ...], str, int, int | None]] = {
    "changed": (("UPDATE audit SET actor = 'eve' WHERE position = 3",), "changed", 3, 3),
    "changed detail": (("UPDATE audit SET detail = '[1]' WHERE position = 2",), "changed", 2, 2),
    "changed with its digest": (("UPDATE audit SET after = 'x', digest = 'x' WHERE position = 3",), "changed", 3, 3),
    "deleted": (("DELETE FROM audit WHERE position = 3",), "deleted", 3, None),
    "deleted first": (("DELETE FROM audit WHERE position = 1",), "deleted", 1, None),
    "deleted end": (("DELETE FROM audit WHERE position >= 4",), "deleted", 4, None),
    "deleted all": (("DELETE FROM audit",), "deleted", 1, None),
    "places exchanged": (
        (
            "UPDATE audit SET position = -position WHERE position IN (2, 3)",
            "UPDATE audit SET position = 5 + position WHERE position < 0",
        ),
        "reordered", 2, 3,
    ),
    "head set back": (("UPDATE audit_head SET position = 4",), "inserted", 5, None),
}  # fmt: skip


@STORED
@pytest.mark.parametrize("what", TAMPERED)
async def test_rows_that_were_tampered_with_are_named(place: Place, what: str) -> None:
    statements, why, position, number = TAMPERED[what]
    team = place.team(place.open())
    await team.audit([entry(at) for at in range(1, 6)])
    await link_all(team)
    first = (await team.chain(0, 1))[0].entry.number - 1  # a sequence goes on counting in an emptied table
    assert (await verify_trail(team)).is_intact
    execute(place, *statements)
    assert await reason(team) == (why, position, None if number is None else number + first)


STRANGE = {
    "at = 'abc'": {"at": "abc"},
    "actor = x'ff00'": {"actor": "b'\\xff\\x00'"},
    "detail = x'ff'": {"detail": "b'\\xff'"},
}


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)  # columns of PostgreSQL hold nothing else
@pytest.mark.parametrize("change", STRANGE)
async def test_a_row_that_cannot_be_read_is_shown_and_named(place: Place, change: str) -> None:
    team = place.team(place.open())
    await team.audit([entry(at) for at in range(1, 4)])
    execute(place, f"UPDATE audit SET {change} WHERE number = 2")
    found = await team.audited()
    assert [one.number for one in found] == [3, 2, 1]
    assert found[1].detail["unreadable"] == STRANGE[change]
    assert isinstance(found[1].at, int)
    assert all(isinstance(text, str) for text in (found[1].actor, found[1].entity))
    assert await reason(team) == ("changed", 2, 2)
    execute(place, "UPDATE audit SET position = 'x' WHERE number = 2")
    assert (await reason(team))[0] == "deleted"


@STORED
async def test_an_inserted_row_is_named_and_never_linked(place: Place) -> None:
    team = place.team(place.open())
    await team.audit([entry(1), entry(2)])
    await link_all(team)
    execute(
        place,
        "INSERT INTO audit (at, actor, action, entity, detail, before, after, digest) "
        "VALUES (3, 'eve', 'token.create', 't9', '{}', '', '', 'x')",
    )
    last = max(one.number for one in await team.audited())
    assert await reason(team) == ("inserted", 3, last)
    await link_all(team)
    await team.audit([entry(4)])
    await link_all(team)
    assert await reason(team) == ("inserted", 4, last)


@STORED
async def test_a_row_between_two_others_is_named(place: Place) -> None:
    team = place.team(place.open())
    await team.audit([entry(1), entry(2), entry(3)])
    await link_all(team)
    last = (await team.audited())[0].number
    execute(
        place,
        "UPDATE audit SET position = 4 WHERE position = 3",
        "INSERT INTO audit (at, actor, action, entity, detail, before, after, digest, position, previous, hash) "
        "SELECT at, 'eve', action, entity, detail, before, after, digest, 3, previous, hash FROM audit WHERE position = 4",
    )
    assert await reason(team) == ("changed", 3, last + 1)


@STORED
async def test_a_chain_that_was_written_anew_is_not_that_of_an_earlier_head(place: Place) -> None:
    team = place.team(place.open())
    await team.audit([entry(1), entry(2)])
    await link_all(team)
    head = await team.audit_head()
    execute(place, "DELETE FROM audit", "DELETE FROM audit_head")
    await team.audit([entry(1), entry(9), entry(3)])
    await link_all(team)
    assert (await verify_trail(team)).is_intact
    found = await verify_trail(team, f"{head.position}:{head.hash}")
    assert found.broken is not None
    assert (found.broken.reason, found.broken.position) == ("other-head", 2)
    later = await verify_trail(team, f"9:{head.hash}")
    assert later.broken is not None
    assert (later.broken.reason, later.broken.position) == ("deleted", 4)


@pytest.mark.parametrize("head", ["", "x", "1:x", ":" + "0" * 64, "-1:" + "0" * 64, "9" * 30 + ":" + "0" * 64])
async def test_a_head_that_is_none_is_refused(team: Team, head: str) -> None:
    with pytest.raises(InvalidInput, match="POSITION:HASH"):
        await verify_trail(team, head)
