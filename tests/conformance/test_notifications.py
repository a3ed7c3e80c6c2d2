"""Notifications on every store: one message per event, after crashes too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.model.errors import StoreUnavailable
from noetl.model.messages import Ending, ItemEnd, Report, Start, Suspension
from noetl.model.work import Lease
from noetl.ports import Commit, Receipt
from noetl.ports.outbox import OutboxMessage
from noetl.ports.triggers import Message, StoredTrigger
from noetl.server.background.reactions.notifications import SLA, Notifications
from noetl.server.background.subscriptions.poisoned import letter_of
from noetl.server.control_plane import LocalControlPlane
from noetl.server.operations.triggers import apply, skip_ends
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import RealClock, done, register, report_on

pytestmark = pytest.mark.asyncio
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"
ONE = HEAD + "  - {step: one, tool: {kind: noop}}\n"
LOOP = HEAD + "  - {step: one, loop: {in: [1, 2, 3], iterator: item}, tool: {kind: noop}}\n"
WAITS = HEAD + "  - {step: ask, tool: {kind: wait, signal: go}}\n"
ASKS = HEAD + (
    "  - {step: ask, tool: {kind: wait, signal: go}, next: after}\n"
    "  - {step: after, tool: {kind: noop, result: '{{ ask.approved }}'}}\n"
)
GATE = HEAD + (
    "  - {step: one, tool: {kind: noop}, next: two}\n"
    "  - step: two\n    spec: {policy: {admit: {rules: [{when: '{{ execution.signals.go.approved }}', then: {allow: true}}]}}}\n"
    "    tool: {kind: noop}\n"
)


def fails(lease: Lease, kind: str = "unknown") -> Report:
    """Return the report of work that failed for good."""
    error = {"kind": kind, "message": "division by zero", "retryable": False}
    name, chunk = f"{lease.work.work_id}:{lease.epoch}", lease.work.chunk
    if chunk is None:
        return Report(name, lease.work.run_id, lease.epoch, lease.worker, ending=Ending("error", None, error))
    items = tuple(ItemEnd(chunk.start + number, "error", error=error) for number in range(len(chunk.items)))
    more: dict[str, Any] = {"items": items, "chunk": chunk.chunk_id, "ending": Ending("ok")}
    return Report(name, lease.work.run_id, lease.epoch, lease.worker, **more)


def times_out(lease: Lease) -> Report:
    return fails(lease, "timeout")


def waits(lease: Lease) -> Report:
    """Return the report of a task that waits for the signal `go`."""
    wait = Suspension("wait", {"at": 0}, signal="go")
    return Report(f"wait-{lease.work.work_id}", lease.work.run_id, lease.epoch, lease.worker, suspension=wait)


CASES = {
    "failed": (ONE, fails),
    "timeout": (ONE, times_out),
    "dead_letter": (LOOP, fails),
    "approval": (ASKS, waits),
    "sla": (WAITS, waits),
}


class System:
    """Notifications on a store, and what the test asks of both."""

    def __init__(self, place: Place, store: Store, control: LocalControlPlane) -> None:
        self.place, self.store, self.control = place, store, control
        self.triggers, self.outbox, self.clock = place.triggers(store), place.outbox(store), RealClock()

    def reader(self, holder: str = "a", outbox: Any = None, clock: Any = None) -> Notifications:
        derived, chosen = self.place.derived(self.store), outbox or self.outbox
        parts = (self.triggers, self.store, chosen, derived, self.control.plan, clock or self.clock)
        return Notifications(*parts, holder=holder, base="https://noetl.example.com")

    async def add(self, name: str, *on: str, path: str = "*", **more: Any) -> None:
        spec = {"on": list(on), "channel": "webhook", "url": "https://example.com/x", **more}
        await self.triggers.add(StoredTrigger("notification", name, path, spec))

    async def play(
        self, content: str, report: Callable[[Lease], Report] = done, path: str = "etl/load", number: str = "1"
    ) -> None:
        """Start an execution, and report on all work that this creates."""
        playbook = await register(self.store, content.replace("path: p", f"path: {path}"), path)
        await self.control.submit(number, Start(f"start-{number}", path, playbook, {}), None)
        leases = await self.control.claim("w", ("",), 9, 10.0)
        while leases:
            lease = leases.pop()
            leases += await report_on(self.control, number, report(lease), 9)

    async def messages(self) -> list[OutboxMessage]:
        return list(reversed(await self.outbox.messages(None, None, 100)))


@asynccontextmanager
async def system(place: Place) -> AsyncIterator[System]:
    store = place.open()
    async with LocalControlPlane(store, RealClock()) as control:
        yield System(place, store, control)


class Later(RealClock):
    """A clock that is an hour ahead."""

    def now(self) -> int:
        return super().now() + 3_600_000


def crashing(here: System) -> Any:
    """Return an outbox that takes a message, and does not answer."""

    class Crashes:
        async def put(self, message: OutboxMessage, now: int) -> int:
            await here.outbox.put(message, now)
            raise StoreUnavailable("the answer was lost")

    return Crashes()


@pytest.mark.parametrize("event", list(CASES))
async def test_each_event_is_one_message_also_after_a_crash(place: Place, event: str) -> None:
    content, report = CASES[event]
    async with system(place) as here:
        more = {"sla": "30m"} if event == "sla" else {}
        await here.add("n", event, **more)
        await here.play(content, report)
        with pytest.raises(StoreUnavailable):
            await here.reader(outbox=crashing(here), clock=Later()).look()
        assert len(await here.messages()) == 1
        for name in "ab":
            await here.reader(name, clock=Later()).look()
        [message] = await here.messages()
        assert (message.target, message.address, message.execution_id) == ("http", "https://example.com/x", "1")
        assert message.payload["event"] == event
        assert message.payload["path"] == "etl/load"
        assert message.payload["url"] == "https://noetl.example.com/api/executions/1"


async def test_a_dead_letter_of_a_subscription_is_one_message(place: Place) -> None:
    async with system(place) as here:
        await here.add("n", "dead_letter", path="etl/*")
        await here.add("elsewhere", "dead_letter", path="other/*")
        await here.add("failures", "failed")
        subscription = StoredTrigger("subscription", "orders", "etl/load")
        letters = set()
        for number in range(12):  # more than a page
            message = Message(f"m{number}", {"n": "x"})
            change = letter_of(str(number), subscription, message, "not a number", 1_000, here.clock.now())
            made = here.store.commit([Commit(str(number), 0, letters=(change,))])
            if not isinstance(made, Receipt):
                await made
            letters.add(change.message_id)
        with pytest.raises(StoreUnavailable):
            await here.reader(outbox=crashing(here), clock=Later()).look()
        assert len(await here.messages()) == 1
        for name in "ab":
            await here.reader(name, clock=Later()).look()
        found = await here.messages()
        assert len(found) == len(letters)
        assert {message.payload["letter_id"] for message in found} == letters
        assert {message.payload["notification"] for message in found} == {"n"}
        first = found[0].payload
        assert (first["subscription"], first["error"], "url" in first) == ("orders", "not a number", False)
        assert first["text"].splitlines()[0] == "etl/load has a dead letter of the subscription orders"


async def test_a_crash_before_the_message_loses_nothing(place: Place) -> None:
    async with system(place) as here:
        await here.add("n", "failed")
        await here.play(ONE, fails)

        class Crashes:
            async def put(self, message: OutboxMessage, now: int) -> int:
                raise StoreUnavailable("no store")

        with pytest.raises(StoreUnavailable):
            await here.reader(outbox=Crashes()).look()
        assert await here.messages() == []
        await here.reader().look()
        assert len(await here.messages()) == 1


async def test_many_servers_send_one_message(place: Place) -> None:
    async with system(place) as here:
        await here.add("n", "failed")
        await here.play(ONE, fails)
        await asyncio.gather(*(here.reader(name).look() for name in "abc"))
        await here.reader("a").look()
        assert len(await here.messages()) == 1


async def test_only_what_a_notification_watches_is_sent(place: Place) -> None:
    async with system(place) as here:
        await here.add("team", "failed", path="etl/*")
        await here.add("both", "failed", "timeout", path="etl/late")
        await here.add("other", "failed", path="team-b/*")
        await here.add("letters", "approval", "dead_letter", path="none")
        await here.play(ONE, fails)
        await here.play(ONE, times_out, path="etl/late", number="2")
        await here.play(ONE, path="etl/good", number="3")
        await here.play(WAITS, waits, path="etl/waits", number="4")
        await here.reader().look()
        found = [(one.payload["notification"], one.payload["event"]) for one in await here.messages()]
        assert sorted(found) == [("both", "timeout"), ("team", "failed"), ("team", "failed")]
        [failure] = [one.payload for one in await here.messages() if one.execution_id == "1"]
        assert "zero" in failure["error"]
        assert failure["text"].startswith("etl/load failed")


async def test_a_gate_that_reads_a_decision_wants_an_approval(place: Place) -> None:
    async with system(place) as here:
        await here.add("n", "approval")
        await here.play(GATE)
        await here.reader().look()
        [message] = await here.messages()
        assert (message.payload["step"], message.payload["signal"]) == ("two", "go")


async def test_an_sla_is_missed_once_and_kept_by_what_ended_in_time(place: Place) -> None:
    async with system(place) as here:
        await here.add("n", "sla", sla="30m")
        await here.play(WAITS, waits)
        await here.play(ONE, number="2")
        await here.reader().look()
        assert await here.messages() == []
        reader = here.reader(clock=Later())
        await here.triggers.advance(SLA, {"at": 0}, (await here.triggers.position(SLA))[1])
        await reader.look()
        await here.triggers.advance(SLA, {"at": 0}, (await here.triggers.position(SLA))[1])
        await here.reader(clock=Later()).look()
        assert [one.execution_id for one in await here.messages()] == ["1"]


async def test_events_before_a_notification_or_of_a_restored_store_send_nothing(place: Place) -> None:
    async with system(place) as here:
        await here.play(ONE, fails)
        reader = here.reader()
        await reader.look()
        await here.add("n", "failed")
        await reader.look()
        await here.play(ONE, fails, number="2")
        await skip_ends(here.triggers, here.store)
        await reader.look()
        assert await here.messages() == []
        await here.play(ONE, fails, number="3")
        await reader.look()
        assert [one.execution_id for one in await here.messages()] == ["3"]


async def test_a_deleted_notification_that_is_made_again_is_another_one(place: Place) -> None:
    async with system(place) as here:
        found: list[Mapping[str, Any]] = []
        for at in (1, 2):
            spec = {"on": ["failed"], "channel": "slack", "credential": "c"}
            await here.triggers.add(StoredTrigger("notification", "n", "*", spec, created_at=at))
            await here.play(ONE, fails, number=str(at))
            await here.reader().look()
            await here.triggers.remove("notification", "n")
            found = [one.payload for one in await here.messages()]
            assert len(found) == at
        assert list(found[0]) == ["text"]


async def test_what_happens_during_a_pause_is_not_sent(place: Place) -> None:
    async with system(place) as here:
        await here.add("ops", "failed", "sla", sla="1s")

        async def pause(paused: bool) -> None:
            assert (
                await apply(here.triggers, "notification", "ops", lambda old: replace(old, paused=paused)) is not None
            )

        await pause(True)
        await here.play(ONE, fails)
        await here.reader().look()
        await pause(False)
        await here.reader().look()
        assert await here.messages() == []
        await here.play(ONE, fails, number="2")
        await here.reader().look()
        assert [one.execution_id for one in await here.messages()] == ["2"]


async def test_a_notification_that_cannot_be_read_does_not_stop_the_others(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with system(place) as here:
        await here.add("broken", "failed", to=[5])
        await here.add("n", "failed")
        await here.play(ONE, fails)
        reader = here.reader()
        for _ in range(3):
            await reader.look()
        assert [one.payload["notification"] for one in await here.messages()] == ["n"]
        [logged] = [one for one in caplog.records if "broken" in one.getMessage()]
        assert "got `int` - at `$.to[0]`" in logged.getMessage()
        assert logged.exc_info is None
