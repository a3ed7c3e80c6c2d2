"""The relay: delivery, retries with backoff, giving up, several relays."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from noetl.engine.tasks.retry import Schedule
from noetl.model.errors import StoreUnavailable
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports.outbox import OutboxMessage
from noetl.server.background.outbox_relay import OutboxRelay
from noetl.stores.memory.outbox import MemoryOutbox
from noetl.stores.memory.tables import Tables

pytestmark = pytest.mark.asyncio
BUSY = failed("server_error", "busy", code="HTTP_503", retryable=True)
GONE = failed("client_error", "no such place", code="HTTP_400")


class Hand:
    """Clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.at = 1_000_000

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += round(seconds * 1000)
        await asyncio.sleep(0)


class Target:
    """Target with scripted answers; records what it receives."""

    def __init__(self, *answers: Outcome) -> None:
        self.answers = list(answers)
        self.got: list[tuple[str, int]] = []

    async def __call__(self, message: OutboxMessage) -> Outcome:
        self.got.append((message.key, message.attempts))
        await asyncio.sleep(0)
        return self.answers.pop(0) if self.answers else ok()


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def outbox() -> MemoryOutbox:
    return MemoryOutbox(Tables())


Make = Callable[..., OutboxRelay]


@pytest.fixture
def relay(outbox: MemoryOutbox, clock: Hand) -> Make:
    def make(target: Target, attempts: int = 3) -> OutboxRelay:
        return OutboxRelay(outbox, target, clock, Schedule(attempts, 1_000, "exponential", 60_000, jitter=0.5))

    return make


async def test_messages_are_delivered_once_and_marked(outbox: MemoryOutbox, clock: Hand, relay: Make) -> None:
    target = Target()
    for index in range(40):
        await outbox.put(OutboxMessage(f"k{index}"), clock.now())
    assert await relay(target).drain() == 40
    assert await relay(target).drain() == 0
    assert Counter(key for key, _ in target.got) == {f"k{index}": 1 for index in range(40)}
    assert {message.state for message in await outbox.messages(None, None, 99)} == {"delivered"}


async def test_a_failed_message_is_tried_again_after_growing_delays(
    outbox: MemoryOutbox, clock: Hand, relay: Make
) -> None:
    target = Target(BUSY, BUSY)
    made = relay(target)
    number = await outbox.put(OutboxMessage("k"), clock.now())
    delays = []
    for _ in range(2):
        assert await made.drain() == 0
        found = await outbox.message(number)
        assert found is not None
        assert (found.state, found.error) == ("pending", "HTTP_503: busy")
        delays.append(found.available_at - clock.now())
        clock.at = found.available_at - 1
        assert await made.drain() == 0
        clock.at += 1
    assert await made.drain() == 1
    assert target.got == [("k", 1), ("k", 2), ("k", 3)]
    assert 500 <= delays[0] <= 1_500
    assert 1_000 <= delays[1] <= 3_000


async def test_the_other_side_may_ask_for_more_time(outbox: MemoryOutbox, clock: Hand, relay: Make) -> None:
    target = Target(failed("rate_limit", "slow", code="HTTP_429", retryable=True, retry_after=3_600))
    number = await outbox.put(OutboxMessage("k"), clock.now())
    await relay(target).drain()
    found = await outbox.message(number)
    assert found is not None
    assert found.available_at == clock.now() + 3_600_000


@pytest.mark.parametrize(("answer", "tries"), [(GONE, 1), (BUSY, 3)])
async def test_a_message_is_dead_when_no_attempt_is_left_or_makes_sense(
    outbox: MemoryOutbox, clock: Hand, relay: Make, answer: Outcome, tries: int
) -> None:
    target = Target(*[answer] * 9)
    number = await outbox.put(OutboxMessage("k"), clock.now())
    for _ in range(9):
        await relay(target).drain()
        clock.at += 100_000
    found = await outbox.message(number)
    assert found is not None
    assert (found.state, len(target.got)) == ("dead", tries)
    target.answers.clear()
    await outbox.again(number, clock.now())
    assert await relay(target).drain() == 1


async def test_a_target_that_raises_ends_nothing(outbox: MemoryOutbox, clock: Hand, relay: Make) -> None:
    class Broken(Target):
        async def __call__(self, message: OutboxMessage) -> Outcome:
            if message.key == "bad":
                raise RuntimeError("no")
            return await super().__call__(message)

    for key in ("bad", "good"):
        await outbox.put(OutboxMessage(key), clock.now())
    assert await relay(Broken()).drain() == 1
    states = {message.key: message.state for message in await outbox.messages(None, None, 9)}
    assert states == {"bad": "dead", "good": "delivered"}


async def test_several_relays_share_the_messages(outbox: MemoryOutbox, clock: Hand, relay: Make) -> None:
    target = Target()
    for index in range(60):
        await outbox.put(OutboxMessage(f"k{index}"), clock.now())
    done = await asyncio.gather(*(relay(target).drain() for _ in range(4)))
    assert sum(done) == 60
    assert max(Counter(key for key, _ in target.got).values()) == 1


async def test_what_a_dead_relay_had_is_delivered_by_another(outbox: MemoryOutbox, clock: Hand, relay: Make) -> None:
    await outbox.put(OutboxMessage("k"), clock.now())
    hanging = asyncio.create_task(relay(Target()).drain())
    await asyncio.sleep(0)
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    found = await outbox.messages("pending", None, 9)
    assert [message.attempts for message in found] == [1]
    clock.at = found[0].available_at
    assert await relay(Target()).drain() == 1


async def test_it_runs_until_it_is_told_to_end_and_forgets_the_old(
    outbox: MemoryOutbox, clock: Hand, relay: Make
) -> None:
    old = await outbox.put(OutboxMessage("old"), clock.now())
    await outbox.discard(old, "no")
    clock.at += 8 * 86_400_000
    new = await outbox.put(OutboxMessage("new"), clock.now())
    running = asyncio.create_task(relay(Target()).run())
    while await outbox.message(old) is not None:
        await asyncio.sleep(0)
    found = await outbox.message(new)
    assert found is not None
    assert found.state == "delivered"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_store_that_is_away_is_waited_for(outbox: MemoryOutbox, clock: Hand, relay: Make) -> None:
    target = Target()
    numbers = [await outbox.put(OutboxMessage(f"k{index}"), clock.now()) for index in range(3)]
    marked, away = outbox.delivered, [StoreUnavailable("away"), RuntimeError("odd")]

    async def delivered(number: int, attempt: int, now: int) -> bool:
        if away:
            raise away.pop(0)
        return await marked(number, attempt, now)

    outbox.delivered = delivered  # type: ignore[method-assign]
    running = asyncio.create_task(relay(target).run())
    while [one.state for one in await outbox.messages(None, None, 9)] != ["delivered"] * 3:
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert {key for key, _ in target.got} == {"k0", "k1", "k2"}
    assert len(target.got) == 5  # two whose end could not be written down went out again
    assert numbers == [1, 2, 3]


async def test_a_target_that_hangs_holds_up_no_other(outbox: MemoryOutbox, clock: Hand) -> None:
    go = asyncio.Event()
    got: list[str] = []

    async def deliver(message: OutboxMessage) -> Outcome:
        if message.key == "k0":
            await go.wait()
        got.append(message.key)
        return ok()

    for index in range(200):
        await outbox.put(OutboxMessage(f"k{index}"), clock.now())
    draining = asyncio.create_task(OutboxRelay(outbox, deliver, clock, Schedule(3)).drain())
    while len(got) < 199:
        await asyncio.sleep(0)
    assert not draining.done()
    go.set()
    assert await draining == 200
    assert got[-1] == "k0"
