"""Leases lost between a worker and its servers: no work waits for their expiry.

Acknowledgements and reconnects are given so much time here that only what is said at the next hello can help.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from noetl.model.errors import StoreUnavailable
from noetl.model.messages import Signal
from noetl.wire.session import Ack, Claim, Heartbeat, Release, Stop
from tests.server.http.test_worker_socket import claimed, done, held, kept
from tests.server.serving import ONE, TWO, Served, happens, listening, session

pytestmark = pytest.mark.asyncio
LONG_MS = 600_000


@asynccontextmanager
async def servers(folder: Path, count: int = 2) -> AsyncIterator[list[Served]]:
    """Servers on one store, on which nothing runs out by time."""
    async with AsyncExitStack() as stack:
        found = [await stack.enter_async_context(listening(folder, lease_ms=LONG_MS)) for _ in range(count)]
        for served in found:
            served.services.registry._ack_ms = served.services.registry._reconnect_ms = LONG_MS
        yield found


async def test_a_lease_that_was_lost_on_its_way_comes_again_at_another_server(tmp_path: Path) -> None:
    """The first server hangs or was killed: its session is neither open nor closed."""
    async with servers(tmp_path) as (one, two), session(one, "w") as lost:
        started = await one.start(ONE)
        first = await claimed(lost)
        async with session(two, "w") as worker:
            again = await claimed(worker)
            assert (again.work.work_id, again.attempt) == (first.work.work_id, 2)
            assert (await worker.leases(done(again))).status == "applied"
        await one.until(started, "completed")


async def test_what_a_worker_holds_stays_its_own_at_another_server(tmp_path: Path) -> None:
    async with servers(tmp_path) as (one, two):
        one.services.registry._reconnect_ms = 1
        started = await one.start(ONE)
        async with session(one, "w") as before:
            lease = await kept(before)
            async with session(two, "w", held=(held(lease),)) as worker:
                await before.socket.close()
                await happens(lambda: one.services.registry.workers == 0, "the first server forgot it")
                assert replace(await worker.ask(Heartbeat((held(lease),), "h")), now=0) == Stop((), "h")
                assert (await worker.leases(done(lease))).status == "applied"
        await one.until(started, "completed")


async def test_a_lease_that_arrived_and_was_dropped_is_handed_out_again(tmp_path: Path) -> None:
    async with servers(tmp_path, 1) as [served]:
        await served.start(ONE)
        async with session(served, "w") as worker:
            first = await kept(worker)
        async with session(served, "w") as worker:
            again = await claimed(worker, "another")
            assert (again.work.work_id, again.attempt) == (first.work.work_id, 2)


async def test_work_that_comes_with_a_report_goes_back_where_its_session_is_over_by_then(tmp_path: Path) -> None:
    async with servers(tmp_path, 1) as [served]:
        started = await served.start(TWO)
        handouts = served.services.registry
        async with session(served, "w") as worker:
            lease = await kept(worker)
            frame = done(lease, want=1)
            control = served.services.control
            before = asyncio.create_task(control.submit(started, Signal("s", "go")))  # so the report waits for a turn
            reporting = asyncio.create_task(handouts.report_wait(handouts.connection("w"), frame))
            while not control.sequencer.outstanding.with_report(f"w/{frame.report.message_id}"):
                await asyncio.sleep(0)
            assert reporting.cancel()  # its session ends between the commit and the answer
            await before
            again = await claimed(worker, "another")
            assert again.work.step == "two"
            assert (await worker.leases(done(again))).status == "applied"
            assert (await worker.leases(frame)).status == "duplicate"
        await served.until(started, "completed")


async def test_work_that_a_closed_session_does_not_take_goes_back(tmp_path: Path) -> None:
    async with servers(tmp_path, 1) as [served]:
        started = await served.start(TWO)
        registry = served.services.registry
        async with session(served, "w") as worker:
            lease = await kept(worker)
            answers: list[object] = []

            def refuse(answer: object) -> bool:
                answers.append(answer)
                return False

            registry.report(registry.connection("w"), done(lease, want=1), refuse)
            again = await claimed(worker, "another")
            assert (again.work.step, len(answers)) == ("two", 1)
            assert (await worker.leases(done(again))).status == "applied"
        await served.until(started, "completed")


async def test_a_lease_whose_frame_was_lost_is_the_answer_to_the_same_claim(tmp_path: Path) -> None:
    async with servers(tmp_path, 1) as [served]:
        await served.start(ONE)
        async with session(served, "w") as worker:
            first = await claimed(worker, "c-1")
        async with session(served, "w") as worker:
            assert await claimed(worker, "c-1") == first


async def test_a_claim_of_a_session_that_has_closed_takes_no_work(tmp_path: Path) -> None:
    async with servers(tmp_path, 1) as [served], session(served, "other") as other:
        async with session(served, "w") as worker:
            await worker.send(Claim("c", 1, 30.0))
            await happens(lambda: bool(served.services.registry.connection("w").claims), "the claim")
        await happens(lambda: served.services.registry.connection("w").push is None, "the end of the session")
        await served.start(ONE)
        assert (await claimed(other)).attempt == 1


async def test_a_session_that_could_not_be_opened_keeps_no_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with servers(tmp_path, 1) as [served]:
        handouts = served.services.registry
        handouts._reconnect_ms = 1
        await served.start(ONE)
        async with session(served, "w") as worker, session(served, "other") as other:
            first = await kept(worker)

            async def away(*_: object) -> None:
                raise StoreUnavailable("the store is away")

            with monkeypatch.context() as patched:
                patched.setattr(handouts, "_enlist", away)
                with pytest.raises(AssertionError, match="the store is away"):
                    async with session(served, "w", held=(held(first),)):
                        pass
            again = await claimed(other, wait_s=20.0)
            assert (again.work.work_id, again.attempt) == (first.work.work_id, 2)


async def test_a_worker_that_gave_a_lease_back_into_nothing_gets_it_again(tmp_path: Path) -> None:
    """It was acknowledged and given back, but the session died before that arrived."""
    async with servers(tmp_path) as (one, two):
        await one.start(ONE)
        async with session(one, "w") as worker:
            first = await kept(worker)
            await worker.send(Ack((held(first),)))
        async with session(two, "w") as worker:
            again = await claimed(worker)
            assert again.work.work_id == first.work.work_id
            await worker.send(Release((held(again),)))
            assert (await claimed(worker, "c-2")).attempt == again.attempt
