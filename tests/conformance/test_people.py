"""Every store's users, groups and sessions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from noetl.ports import AuditEntry
from noetl.ports.people import Grant, Group, People, Session, User
from tests.conformance.conftest import Place

pytestmark = pytest.mark.asyncio
GRANTS = (Grant("editor", "team-a/"), Grant("viewer"))
ADA = User("ada", "scrypt$x", GRANTS, ("ops", "dev"), False, 100, "root", 150, 160, "https://id.example")
OPS = Group("ops", GRANTS, 100, "root")
ACT = AuditEntry(1, "root", "user.change", "ada")


@pytest.fixture
def people(place: Place) -> People:
    return place.people(place.open())


async def test_a_user_is_kept_changed_and_removed(place: Place) -> None:
    store = place.open()
    people, team = place.people(store), place.team(store)
    assert await people.add_user(ADA, ACT)
    assert not await people.add_user(replace(ADA, password="other"), ACT)
    assert await people.user("ada") == ADA
    assert await people.user("Ada") is None
    await people.add_user(User("Bob"))
    assert [user.name for user in await people.users()] == ["Bob", "ada"]
    assert await people.save_user(replace(ADA, disabled=True, grants=()), ACT)
    assert await people.user("ada") == replace(ADA, disabled=True, grants=())
    assert not await people.save_user(User("eve"), ACT)
    assert await people.remove_user("ada", ACT)
    assert not await people.remove_user("ada", ACT)
    assert len(await team.audited()) == 3  # what changed nothing left no entry


async def test_a_group_is_put_and_removed(place: Place) -> None:
    one, two = place.people(place.open()), place.people(place.open())
    await one.put_group(OPS)
    await one.put_group(Group("dev"))
    await two.put_group(replace(OPS, grants=()))
    assert await one.groups() == [Group("dev"), replace(OPS, grants=())]
    assert await one.remove_group("ops")
    assert not await two.remove_group("ops")
    assert await two.groups() == [Group("dev")]


async def test_the_members_of_a_removed_group_leave_it(place: Place) -> None:
    store = place.open()
    people, team = place.people(store), place.team(store)
    bob, eve = User("bob", groups=("dev",)), User("eve", groups=("ops",))
    for user in (ADA, bob, eve, User("fay")):
        await people.add_user(user)
    for name in ("ops", "dev"):
        await people.put_group(Group(name))
    assert await people.remove_group("ops", ACT)
    assert not await people.remove_group("dev'", ACT)
    await people.put_group(Group("ops"))  # another one of this name
    assert await people.users() == [replace(ADA, groups=("dev",)), bob, User("eve"), User("fay")]
    assert len(await team.audited()) == 1


async def test_a_session_ends_with_its_time_its_user_or_by_itself(place: Place) -> None:
    one, two = place.people(place.open()), place.people(place.open())
    for name in ("ada", "bob", "eve"):
        await one.add_user(User(name))
    for digest, user, until in (("a", "ada", 900), ("b", "bob", 900), ("e", "eve", 900), ("o", "ada", 300)):
        await one.add_session(Session(digest, user, 100, until))
    every = ["a", "b", "e", "o", "none"]
    assert set(await two.valid_sessions(every, 299)) == {"a", "b", "e", "o"}
    assert set(await two.valid_sessions(every, 300)) == {"a", "b", "e"}
    assert await two.session("a") == Session("a", "ada", 100, 900)
    await one.save_user(User("ada", disabled=True))
    assert await two.valid_sessions(every, 200) == {"b": User("bob"), "e": User("eve")}
    await one.save_user(User("ada"), ends_sessions=True)
    await one.save_user(replace(ADA, name="eve"))
    assert await two.valid_sessions(every, 200) == {"b": User("bob"), "e": replace(ADA, name="eve")}
    await one.remove_user("bob")
    assert await two.session("b") is None
    assert await one.end_session("e")
    assert not await one.end_session("e")
    assert await two.valid_sessions(every, 200) == {}


async def test_expired_sessions_are_forgotten_when_one_begins(people: People) -> None:
    await people.add_user(ADA)
    await people.add_session(Session("old", "ada", 100, 200))
    await people.add_session(Session("new", "ada", 200, 400))
    assert await people.session("old") is None
    assert await people.session("new") is not None
