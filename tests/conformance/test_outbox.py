"""Every outbox: stored once, claimed by one relay, delivered, retried, discarded."""

from __future__ import annotations

import asyncio

import pytest

from noetl.ports import AuditEntry
from noetl.ports.outbox import Outbox, OutboxMessage
from tests.conformance.conftest import Place

pytestmark = pytest.mark.asyncio
ORDER = OutboxMessage("7:s:send", "orders", "http", "http://a/b", {"id": 7, "é": [None]}, {"X-A": "1"}, "api", "7")


@pytest.fixture
def outbox(place: Place) -> Outbox:
    return place.outbox(place.open())


async def put(outbox: Outbox, *keys: str, now: int = 100) -> list[int]:
    return [await outbox.put(OutboxMessage(key, payload=key), now) for key in keys]


async def test_a_message_is_kept_as_it_was_put(outbox: Outbox) -> None:
    number = await outbox.put(ORDER, 100)
    found = await outbox.message(number)
    assert found is not None
    assert (found.key, found.topic, found.target, found.address) == ("7:s:send", "orders", "http", "http://a/b")
    assert (found.payload, found.headers, found.auth) == ({"id": 7, "é": [None]}, {"X-A": "1"}, "api")
    assert (found.execution_id, found.state, found.attempts) == ("7", "pending", 0)
    assert (found.created_at, found.delivered_at, found.error) == (100, None, "")
    assert await outbox.message(number + 1) is None


async def test_the_same_key_is_put_once(place: Place) -> None:
    one, two = place.outbox(place.open()), place.outbox(place.open())
    numbers = await asyncio.gather(*(each.put(ORDER, now) for each in (one, two) for now in (100, 200, 300)))
    assert len(set(numbers)) == 1
    [found] = await two.messages(None, None, 10)
    assert found.number == numbers[0]
    await one.claim(300, 400, 9)
    await one.delivered(found.number, 1, 310)
    assert await two.put(ORDER, 400) == found.number  # also after it was delivered
    assert (await two.claim(999, 1_999, 9)) == []


async def test_a_message_is_claimed_by_one_until_a_time(place: Place) -> None:
    one, two = place.outbox(place.open()), place.outbox(place.open())
    first, second = await put(one, "a", "b")
    assert [(m.number, m.attempts) for m in await one.claim(100, 160, 1)] == [(first, 1)]
    assert [(m.number, m.attempts) for m in await two.claim(100, 160, 9)] == [(second, 1)]
    assert await one.claim(159, 200, 9) == []
    again = await two.claim(160, 220, 9)  # the first claim has expired
    assert [(m.number, m.attempts) for m in again] == [(first, 2), (second, 2)]
    assert not await one.delivered(first, 1, 165)
    assert not await one.failed(first, 1, "late", 170)
    assert await two.delivered(first, 2, 165)
    assert not await two.delivered(first, 2, 166)


async def test_many_who_claim_at_once_share_the_messages(place: Place) -> None:
    several = [place.outbox(place.open()) for _ in range(3)]
    numbers = await put(several[0], *(f"k{index}" for index in range(30)))
    found = await asyncio.gather(*(each.claim(100, 200, 3) for each in several for _ in range(5)))
    claimed = [message.number for part in found for message in part]
    assert len(claimed) == len(set(claimed))
    rest = [message.number for each in several for message in await each.claim(100, 200, 30)]
    assert sorted(claimed + rest) == numbers


async def test_a_failed_attempt_is_tried_again_later_or_never(outbox: Outbox) -> None:
    [number] = await put(outbox, "a")
    await outbox.claim(100, 160, 9)
    assert await outbox.failed(number, 1, "busy", 500)
    assert await outbox.claim(499, 900, 9) == []
    [again] = await outbox.claim(500, 900, 9)
    assert (again.attempts, again.error) == (2, "busy")
    assert await outbox.failed(number, 2, "gone", None)
    found = await outbox.message(number)
    assert found is not None
    assert (found.state, found.error) == ("dead", "gone")
    assert await outbox.claim(10_000, 20_000, 9) == []


async def test_the_one_that_waits_longest_goes_first(outbox: Outbox) -> None:
    later = await outbox.put(OutboxMessage("later", available_at=90), 100)
    soon = await outbox.put(OutboxMessage("soon", available_at=50), 100)
    assert [message.number for message in await outbox.claim(100, 160, 1)] == [soon]
    assert [message.number for message in await outbox.claim(100, 160, 1)] == [later]


async def test_a_person_may_send_it_again_or_give_it_up(outbox: Outbox) -> None:
    dead, given_up, done = await put(outbox, "a", "b", "c")
    await outbox.claim(100, 160, 9)
    await outbox.failed(dead, 1, "no", None)
    await outbox.delivered(done, 1, 110)
    assert await outbox.again(dead, 300)
    assert [(m.number, m.attempts) for m in await outbox.claim(300, 400, 9)] == [(dead, 1), (given_up, 2)]
    assert await outbox.discard(given_up, "not wanted")
    assert not await outbox.discard(given_up, "twice")
    assert not await outbox.again(given_up, 500)
    assert not await outbox.again(done, 500)
    assert not await outbox.discard(done, "too late")
    assert not await outbox.again(999, 500)
    found = await outbox.message(given_up)
    assert found is not None
    assert (found.state, found.error) == ("discarded", "not wanted")


async def test_acts_are_written_down_where_they_change_something(place: Place) -> None:
    store = place.open()
    outbox, team = place.outbox(store), place.team(store)
    [number] = await put(outbox, "a")
    act = AuditEntry(5, "ada", "outbox.discard", str(number))
    assert await outbox.discard(number, "no", act)
    assert not await outbox.discard(number, "no", act)
    assert [(entry.actor, entry.action) for entry in await team.audited()] == [("ada", "outbox.discard")]


async def test_messages_are_listed_by_state_and_page(outbox: Outbox) -> None:
    numbers = await put(outbox, "a", "b", "c", "d")
    await outbox.claim(100, 160, 2)
    await outbox.delivered(numbers[0], 1, 110)
    assert [m.number for m in await outbox.messages(None, None, 3)] == numbers[:0:-1]
    assert [m.number for m in await outbox.messages(None, numbers[1], 3)] == [numbers[0]]
    assert [m.number for m in await outbox.messages("delivered", None, 3)] == [numbers[0]]
    assert [m.number for m in await outbox.messages("pending", numbers[3], 3)] == [numbers[2], numbers[1]]


async def test_what_waits_is_counted(outbox: Outbox) -> None:
    assert await outbox.waiting() == {"pending": 0, "dead": 0, "next_at": 0}
    first, _, _ = await put(outbox, "a", "b", "c")
    await outbox.claim(100, 160, 3)
    await outbox.failed(first, 1, "no", None)
    assert await outbox.waiting() == {"pending": 2, "dead": 1, "next_at": 160}


async def test_old_ones_are_forgotten_and_no_number_is_given_twice(outbox: Outbox) -> None:
    done, given_up, waits = await put(outbox, "a", "b", "c")
    await outbox.claim(100, 160, 1)
    await outbox.delivered(done, 1, 500)
    await outbox.discard(given_up, "no")
    assert await outbox.forget(500) == 1
    assert await outbox.forget(501) == 1
    assert [message.number for message in await outbox.messages(None, None, 9)] == [waits]
    await outbox.discard(waits, "no")
    await outbox.forget(999)
    assert await outbox.put(OutboxMessage("d"), 100) > waits
