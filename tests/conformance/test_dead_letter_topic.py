"""Dead letters under a topic: each goes to the outbox once, with any servers."""

from __future__ import annotations

import pytest

from noetl.ports.outbox import OutboxMessage
from noetl.server.background.dead_letter_topic import DeadLetterTopic
from tests.conformance.conftest import Place, Store
from tests.conformance.test_dead_letters import letter, puts

pytestmark = pytest.mark.asyncio
DAY_MS = 86_400_000
NOW = 100 * DAY_MS


class Hand:
    """Clock that a test advances."""

    at = NOW

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += round(seconds * 1000)


def topic(place: Place, store: Store, clock: Hand) -> DeadLetterTopic:
    return DeadLetterTopic(store, place.outbox(store), clock, "noetl-dlq", 7 * DAY_MS)


async def test_each_letter_is_a_message_once(place: Place) -> None:
    store, other, clock = place.open(), place.open(), Hand()
    outbox = place.outbox(store)

    async def sent() -> list[OutboxMessage]:
        return sorted(await outbox.messages(None, None, 1_000), key=lambda one: one.number)

    made = [letter(f"n{n:03}", at=NOW - n) for n in range(700)]  # more than a page
    old, closed = letter("old", at=NOW - 6 * DAY_MS), letter("closed", at=NOW, status="discarded", closed_at=NOW)
    await store.commit([puts(*made, old, closed)])
    first, second = topic(place, store, clock), topic(place, other, clock)
    assert await first.publish() == 700
    assert await first.publish() == 0
    await second.publish()  # of another server, which knows nothing of the first
    found = await sent()
    assert len(found) == len({one.key for one in found}) == 700
    assert (found[-1].topic, found[-1].execution_id, found[-1].payload["message_id"]) == ("noetl-dlq", "1", "1-n000")
    assert found[-1].payload["last_error"] == "no such row"

    clock.at += 3_000
    again = letter("n000", at=clock.at, attempts=2, replays=1)
    await store.commit([puts(again, at=1)])  # it failed once more
    assert await first.publish() == 1
    await second.publish()
    assert [one.payload["attempts"] for one in await sent()][-1] == 2
    assert len(await sent()) == 701
