"""Subscriptions on every store: each message starts one execution."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from noetl.model.commit import Intake
from noetl.model.errors import InvalidInput, MissingCredentials, SourceUnavailable, StoreUnavailable
from noetl.model.messages import AnyMessage
from noetl.ports import Audit, Selection
from noetl.ports.letters import LetterSelection
from noetl.ports.triggers import Known, Message, Page, Progress, StoredTrigger
from noetl.server.background.subscriptions.feed import Feed
from noetl.server.background.subscriptions.poller import SubscriptionPoller
from noetl.server.control_plane import LocalControlPlane
from noetl.triggers.subscription import SubscriptionSpec
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import RealClock, register

pytestmark = pytest.mark.asyncio
PLAYBOOK = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: a, path: a}
executor: {spec: {workload_schema: {properties: {n: {type: integer}}}}}
workload: {n: 0}
workflow:
  - {step: one, tool: {kind: noop}}
"""
PAYLOAD = {"n": "{{ message.data.n }}"}


class SteppedClock(RealClock):
    """The real time, moved on by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


class Shelf:
    """A source whose messages the test puts; with ids, or with positions."""

    def __init__(self, *, is_ordered: bool) -> None:
        self.is_ordered = is_ordered
        self.messages: list[Message] = []
        self.acked: list[str] = []
        self.error = ""
        self.opened = self.closed = 0

    def put(self, *given: Any) -> None:
        for data in given:
            at = len(self.messages) + 1
            position = {"key": at} if self.is_ordered else None
            problem = data if isinstance(data, str) else ""
            self.messages.append(Message(f"m{at}", data, {}, position, problem))

    async def poll(self, position: Mapping[str, Any], most: int, known: Known) -> Page:
        if self.error:
            raise SourceUnavailable(self.error)
        if self.is_ordered:
            left = self.messages[position.get("key", 0) :]
        else:
            taken = await known([one.message_id for one in self.messages])
            left = [one for one in self.messages if one.message_id not in taken]
        found = tuple(left[:most])
        last = {"key": position.get("key", 0) + len(found)} if self.is_ordered else position
        return Page(found, last, len(left) - len(found), len(left) > len(found))

    async def ack(self, messages: Sequence[Message]) -> None:
        self.acked += [one.message_id for one in messages]

    async def is_woken(self) -> bool:
        return False

    async def close(self) -> None:
        self.closed += 1


class Line:
    """A subscription on a store, and what the test asks of both."""

    def __init__(self, place: Place, store: Store, control: LocalControlPlane, shelf: Shelf) -> None:
        self.place, self.store, self.control, self.shelf = place, store, control, shelf
        self.triggers, self.subscriptions = place.triggers(store), place.subscriptions(store)
        self.clock = SteppedClock()
        self.trigger = StoredTrigger("subscription", "orders", "a", {"source": "http", "payload": PAYLOAD})

    def poller(self, holder: str = "a", submit: Any = None) -> SubscriptionPoller:
        async def open_source(spec: SubscriptionSpec) -> Shelf:
            self.shelf.opened += 1
            return self.shelf

        async def render(data: Any, scope: Mapping[str, Any]) -> Any:
            if "n" not in scope["message"]["data"]:
                raise InvalidInput("`n` is undefined")
            return scope["message"]["data"]

        derived = self.place.derived(self.store)
        parts = (self.triggers, self.subscriptions, self.store, derived, submit or self.control.submit)
        return SubscriptionPoller(*parts, open_source, render, self.clock, holder=holder, most_bytes=1_000)

    async def started(self) -> list[Any]:
        """List the payloads of executions, oldest first."""
        rows = reversed(await self.store.executions(Selection(limit=1_000)))
        firsts = [(await self.store.read(str(row["execution_id"]), 0, 1))[0] for row in rows]
        return [first.payload["payload"]["n"] for first in firsts]

    async def progress(self) -> Progress:
        return await self.subscriptions.progress(Feed(self.trigger).state_id)


@asynccontextmanager
async def line(place: Place, *, is_ordered: bool) -> AsyncIterator[Line]:
    store = place.open()
    async with LocalControlPlane(store, RealClock()) as control:
        system = Line(place, store, control, Shelf(is_ordered=is_ordered))
        await register(store, PLAYBOOK, "a")
        await system.triggers.add(system.trigger)
        yield system


both = pytest.mark.parametrize("is_ordered", [False, True], ids=["by id", "by position"])


@both
async def test_each_message_starts_one_execution(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        system.shelf.put({"n": 1}, {"n": 2})
        poller = system.poller()
        await poller.look()
        system.shelf.put({"n": 3})
        await poller.look()
        assert await system.started() == [1, 2], "it is not due yet"
        system.clock.ahead += 10_000
        await poller.look()
        assert await system.started() == [1, 2, 3]
        assert system.shelf.acked == ["m1", "m2", "m3"]
        found = await system.progress()
        assert (found.received, found.poisoned, found.last_message, found.status["lag"]) == (3, 0, "m3", 0)
        await poller.close()
        assert system.shelf.closed == 1
        team = system.place.team(system.store)
        acts = [one for one in await team.audited() if one.action == "execution.start"]
        assert {one.detail["message"] for one in acts} == {"m1", "m2", "m3"}
        assert {one.actor for one in acts} == {"subscription:orders"}


@both
async def test_more_than_a_page_is_taken_in_at_once(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        system.shelf.put(*({"n": at} for at in range(150)))
        poller = system.poller()
        await poller.look()
        assert (await system.progress()).status["lag"] == 50
        await poller.look()
        assert await system.started() == list(range(150))
        await poller.close()


@both
async def test_a_lost_answer_starts_nothing_twice(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        system.shelf.put({"n": 1}, {"n": 2})

        async def crash(execution_id: str, message: AnyMessage, act: Audit, intake: Intake) -> Mapping[str, Any]:
            await system.control.submit(execution_id, message, act, intake)
            raise StoreUnavailable("the answer was lost")

        await system.poller(submit=crash).look()
        assert await system.started() == [1]
        assert system.shelf.acked == [], "it died between the start and the ack"
        await system.poller().look()
        assert await system.started() == [1, 2]
        assert (await system.progress()).received == 2


@both
async def test_a_crash_before_the_start_loses_nothing(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        system.shelf.put({"n": 1})

        async def crash(*_: Any) -> Mapping[str, Any]:
            raise StoreUnavailable("no store")

        await system.poller(submit=crash).look()
        assert await system.started() == []
        await system.poller().look()
        assert await system.started() == [1]


@both
async def test_a_server_that_has_lost_its_duty_starts_nothing_twice(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        system.shelf.put({"n": 1}, {"n": 2})
        other = system.poller("b")

        async def slow(execution_id: str, message: AnyMessage, act: Audit, intake: Intake) -> Mapping[str, Any]:
            system.clock.ahead += 60_000  # the lease runs out while this server does nothing
            await other.look()
            return await system.control.submit(execution_id, message, act, intake)

        await system.poller("a", submit=slow).look()
        assert await system.started() == [1, 2]
        assert (await system.progress()).revision == 2


@both
async def test_many_servers_take_in_each_message_once(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        system.shelf.put(*({"n": at} for at in range(5)))
        pollers = [system.poller(name) for name in "abc"]
        for _ in range(2):
            await asyncio.gather(*(one.look() for one in pollers))
        assert await system.started() == [0, 1, 2, 3, 4]
        assert system.shelf.opened == 1, "one server polls at a time"
        await asyncio.gather(*(one.close() for one in pollers))


@both
async def test_poisoned_messages_are_dead_letters_and_the_next_ones_start(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        odd = {"n": 6, "t": "\0"}  # PostgreSQL cannot hold it in a text
        system.shelf.put(
            "It is not JSON.", {"m": 1}, {"n": "x"}, {"n": 1, "more": "y" * 1_000}, {"n": 5}, odd, {"n": 7}
        )
        await system.poller().look()
        assert [one for one in await system.started() if one != 6] == [5, 7]
        letters = await system.store.letters(LetterSelection(tool_kind="subscription"))
        found = {one.run_id: (one.step_id, one.path, one.last_error, "data" in one.payload) for one in letters}
        assert found["message:m1"] == ("orders", "a", "It is not JSON.", True)
        assert found["message:m2"] == ("orders", "a", "`n` is undefined", True)
        assert "integer" in found["message:m3"][2]
        assert found["message:m4"] == ("orders", "a", "The message is larger than 1,000 bytes.", False)
        progress = await system.progress()
        assert progress.received + progress.poisoned == 7
        assert progress.poisoned == len(letters) >= 4
        system.clock.ahead += 10_000
        await system.poller().look()
        assert len(await system.store.letters(LetterSelection())) == len(letters)
        assert system.shelf.acked == [f"m{at}" for at in range(1, 8)]


@both
async def test_a_lost_source_is_tried_again_later_each_time(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        system.shelf.put({"n": 1})
        system.shelf.error = "connection refused"
        poller, waits = system.poller(), []
        for failures in (1, 2, 3):
            await poller.look()
            status = (await system.progress()).status
            assert (status["error"], status["failures"]) == ("connection refused", failures)
            waits.append(status["next_at"] - status["failed_at"])
            await poller.look()
            assert system.shelf.opened == failures, "it waits"
            system.clock.ahead += waits[-1]
        assert waits == [2_000, 4_000, 8_000]
        system.shelf.error = ""
        await poller.look()
        assert await system.started() == [1]
        assert "error" not in (await system.progress()).status
        await poller.close()


@both
async def test_a_missing_playbook_holds_messages_back(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        await system.triggers.remove("subscription", "orders")
        system.trigger = StoredTrigger("subscription", "orders", "b", system.trigger.spec)
        await system.triggers.add(system.trigger)
        system.shelf.put({"n": 1})
        poller = system.poller()
        await poller.look()
        assert "The catalog has no `b`" in (await system.progress()).status["error"]
        assert await system.store.letters(LetterSelection()) == []
        await register(system.store, PLAYBOOK.replace("path: a", "path: b"), "b")
        system.clock.ahead += 2_000
        await poller.look()
        assert await system.started() == [1]
        await poller.close()


async def test_the_time_of_the_last_poll_is_noted_while_nothing_happens(place: Place) -> None:
    async with line(place, is_ordered=True) as system:
        poller = system.poller()
        for _ in range(3):
            await poller.look()
            noted = (await system.progress()).status
            assert system.clock.now() - noted["polled_at"] < 5_000
            assert noted["lag"] == 0
            system.clock.ahead += 11_000  # `every` is 10s
        await poller.close()


async def test_a_paused_subscription_goes_on_where_it_was(place: Place) -> None:
    async with line(place, is_ordered=True) as system:
        system.shelf.put({"n": 1})
        poller = system.poller()
        await poller.look()
        trigger = await system.triggers.trigger("subscription", "orders")
        assert trigger is not None
        await system.triggers.save(_with(trigger, paused=True))
        system.shelf.put({"n": 2})
        system.clock.ahead += 10_000
        await poller.look()
        assert (await system.started(), system.shelf.closed) == ([1], 1)
        trigger = await system.triggers.trigger("subscription", "orders")
        assert trigger is not None
        await system.triggers.save(_with(trigger, paused=False))
        await poller.look()
        assert await system.started() == [1, 2]
        await poller.close()


async def test_another_source_begins_anew_and_other_templates_do_not(place: Place) -> None:
    async with line(place, is_ordered=True) as system:
        system.shelf.put({"n": 1})
        poller = system.poller()
        await poller.look()
        for spec, expected in (
            ({"source": "http", "payload": PAYLOAD, "every": "5s"}, [1]),
            ({"source": "http", "payload": PAYLOAD, "url": "http://other"}, [1, 1]),
        ):
            trigger = await system.triggers.trigger("subscription", "orders")
            assert trigger is not None
            await system.triggers.save(_with(trigger, spec=spec))
            await poller.look()
            assert await system.started() == expected
        await poller.close()


def _with(trigger: StoredTrigger, **fields: Any) -> StoredTrigger:
    from msgspec.structs import replace

    return replace(trigger, **fields)


@both
async def test_a_message_waits_for_credentials_that_are_not_stored_yet(place: Place, is_ordered: bool) -> None:
    async with line(place, is_ordered=is_ordered) as system:
        is_stored = False

        async def submit(
            execution_id: str, message: AnyMessage, act: Audit = None, intake: Intake | None = None
        ) -> Any:
            if not is_stored:
                raise MissingCredentials("Credentials are missing; nothing was started.")
            return await system.control.submit(execution_id, message, act, intake)

        system.shelf.put({"n": 1})
        poller = system.poller(submit=submit)
        await poller.look()
        assert (await system.progress()).poisoned == 0
        assert "Credentials are missing" in (await system.progress()).status["error"]
        is_stored = True
        system.clock.ahead += 10_000
        await poller.look()
        assert await system.started() == [1]
        await poller.close()
