"""The port `ControlPlane`: the same in process and over a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from noetl.client.http import Http, Servers
from noetl.client.remote import RemoteControl
from noetl.client.session import Session
from noetl.model.errors import NoetlError
from noetl.model.messages import Ending, Report
from noetl.model.work import Lease
from noetl.ports import ControlPlane
from noetl.ports.work import Answer, Subscription
from noetl.wire.session import Hello
from tests.server.serving import ONE, TWO, Served, happens, listening

pytestmark = pytest.mark.asyncio


@dataclass
class Worker:
    """A worker at the port, and what it was delivered."""

    control: ControlPlane
    name: str = "w"
    leases: list[Lease] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def subscribe(self, capacity: int) -> Subscription:
        return self.control.subscribe(self.name, ("",), capacity, self.leases.extend, self._stop)

    def _stop(self, work: Collection[str]) -> None:
        self.stopped += [work_id for work_id in work if work_id in [lease.work.work_id for lease in self.leases]]

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        return tuple((lease.work.work_id, lease.epoch) for lease in self.leases)

    async def got(self, count: int) -> list[Lease]:
        await happens(lambda: len(self.leases) >= count, f"{count} leases")
        return self.leases

    async def report(self, lease: Lease, want: int = 0) -> Answer | Exception:
        answer: asyncio.Future[Answer | Exception] = asyncio.get_running_loop().create_future()
        name = f"{lease.work.work_id}@{lease.epoch}.1"
        report = Report(name, lease.work.run_id, lease.epoch, self.name, ending=Ending("ok", 7))

        def reply(found: Answer | Exception) -> bool:
            answer.set_result(found)  # a second call raises
            return True

        self.control.report(lease.work.execution_id, report, want, reply)
        return await asyncio.wait_for(answer, 20)


@dataclass
class Place:
    """A server, and how workers reach its control plane."""

    served: Served
    worker: Callable[[str], Worker]


@pytest_asyncio.fixture(params=["in process", "session"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    async with listening(tmp_path) as served:
        if request.param == "in process":
            yield Place(served, lambda name: Worker(served.services.control, name))
            return
        async with sessions(served) as worker:
            yield Place(served, worker)


@asynccontextmanager
async def sessions(served: Served) -> AsyncIterator[Callable[[str], Worker]]:
    http, running = Http(Servers([served.url])), list[asyncio.Task[None]]()

    def worker(name: str) -> Worker:
        session = Session(http, lambda: Hello(name, held=made.held))
        made = Worker(RemoteControl(session, http, poll_s=5.0), name)
        running.append(asyncio.create_task(session.run()))
        return made

    try:
        yield worker
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await http.close()


async def settled(worker: Worker) -> None:
    """Wait until the server knows a subscription and has done all work before it."""
    async with asyncio.timeout(20):
        while True:
            try:
                await worker.control.heartbeat(worker.name, worker.held)
            except NoetlError:
                await asyncio.sleep(0.01)
            else:
                await asyncio.sleep(0.05)
                return


async def test_work_offered_before_and_after_is_delivered_once(place: Place) -> None:
    before = await place.served.start(ONE)
    worker = place.worker("w")
    subscription = worker.subscribe(10)
    await worker.got(1)
    after = [await place.served.start(ONE) for _ in range(3)]
    await worker.got(4)
    await settled(worker)
    assert [lease.work.execution_id for lease in worker.leases] == [before, *after]
    assert {lease.attempt for lease in worker.leases} == {1}
    subscription.close()


async def test_the_last_slots_are_for_playbooks_with_nothing_running(place: Place) -> None:
    busy = [await place.served.start(ONE) for _ in range(18)]
    worker = place.worker("w")
    subscription = worker.subscribe(16)
    await worker.got(15)
    await settled(worker)
    assert [lease.work.execution_id for lease in worker.leases] == busy[:15]
    idle = await place.served.start(TWO)
    await worker.got(16)
    assert worker.leases[15].work.execution_id == idle
    subscription.set_capacity(1)
    await settled(worker)
    assert len(worker.leases) == 16
    subscription.set_capacity(2)
    await worker.got(17)
    await settled(worker)
    assert [lease.work.execution_id for lease in worker.leases[16:]] == busy[15:16]
    subscription.close()


async def test_capacity_is_respected_and_can_grow(place: Place) -> None:
    for _ in range(4):
        await place.served.start(ONE)
    worker = place.worker("w")
    subscription = worker.subscribe(2)
    await worker.got(2)
    await place.served.start(ONE)
    await settled(worker)
    assert len(worker.leases) == 2
    subscription.set_capacity(1)
    await worker.got(3)
    await settled(worker)
    assert len(worker.leases) == 3
    subscription.set_capacity(10)
    await worker.got(5)
    subscription.close()


async def test_a_report_returns_the_next_work_and_sent_again_the_same(place: Place) -> None:
    worker = place.worker("w")
    subscription = worker.subscribe(1)
    started = await place.served.start(TWO)
    [lease] = await worker.got(1)
    first = await worker.report(lease, want=1)
    assert isinstance(first, Answer)
    assert (first.status, [found.work.step for found in first.leases]) == ("applied", ["two"])
    worker.leases += first.leases
    again = await worker.report(lease, want=1)
    assert isinstance(again, Answer)
    assert (again.status, again.leases) == ("duplicate", first.leases)
    last = await worker.report(first.leases[0], want=1)
    assert isinstance(last, Answer)
    assert (last.status, last.leases) == ("applied", [])
    assert (await place.served.until(started, "completed"))["status"] == "completed"
    subscription.close()


async def test_a_closed_subscription_gets_nothing_and_its_work_goes_to_another(place: Place) -> None:
    worker, other = place.worker("w"), place.worker("other")
    subscription = worker.subscribe(5)
    await settled(worker)
    starting = asyncio.create_task(place.served.start(ONE))
    subscription.close()  # a lease may be on its way
    subscription.set_capacity(3)
    started = await starting
    others = other.subscribe(5)
    [lease] = await other.got(1)
    assert (lease.work.execution_id, lease.attempt) == (started, 1)
    assert worker.leases == []
    others.close()


async def test_a_subscription_without_capacity_gets_nothing_and_hears_of_cancellations(place: Place) -> None:
    worker = place.worker("w")
    subscription = worker.subscribe(5)
    started = await place.served.start(ONE)
    [lease] = await worker.got(1)
    subscription.set_capacity(0)
    await place.served.start(ONE)
    await settled(worker)
    await place.served.json("POST", f"/api/executions/{started}/cancel", {"reason": "enough"})
    await happens(lambda: bool(worker.stopped), "the stop")
    assert (worker.stopped, worker.leases) == ([lease.work.work_id], [lease])
    assert await worker.control.heartbeat("w", worker.held) == [lease.work.work_id]
    subscription.close()


async def test_a_report_without_its_lease_is_late(place: Place) -> None:
    worker = place.worker("w")
    subscription = worker.subscribe(1)
    started = await place.served.start(ONE)
    [lease] = await worker.got(1)
    await place.served.json("POST", f"/api/executions/{started}/cancel", {"reason": "enough"})
    answer = await worker.report(lease)
    assert isinstance(answer, Answer)
    assert answer.leases == []
    events = await place.served.json("GET", f"/api/executions/{started}/events")
    types = [event["event_type"] for event in events["events"]]
    assert ("report.late" in types, "step.done" in types) == (True, False)
    subscription.close()


async def test_a_report_that_is_refused_gets_its_error_as_the_reply(place: Place) -> None:
    worker = place.worker("w")
    subscription = worker.subscribe(1)
    await place.served.start(ONE)
    [lease] = await worker.got(1)
    lost = Lease(lease.work.__class__("7:x#1", "77", "x#1", "x", 1, "hash", {}), lease.epoch, 1, lease.until, "w")
    assert isinstance(await worker.report(lost), NoetlError)
    subscription.close()


async def test_a_playbook_is_fetched_by_its_hash(place: Place) -> None:
    worker = place.worker("w")
    subscription = worker.subscribe(1)
    await place.served.start(ONE)
    [lease] = await worker.got(1)
    assert await worker.control.playbook(lease.work.playbook) == await place.served.embedded.store.canonical(
        lease.work.playbook
    )
    subscription.close()
