"""A worker's session over a real WebSocket, from hello to reconnect."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from websockets.asyncio.client import connect

from noetl.model.messages import Ending, Suspension
from noetl.model.messages import Report as Done
from noetl.model.work import Lease
from noetl.wire.session import Ack, Claim, Drain, Heartbeat, Hello, Leases, Refused, Release, Report, Stop, Welcome
from tests.server.serving import ONE, TWO, WAITS, Worker, happens, listening, session

pytestmark = pytest.mark.asyncio


def held(lease: Lease) -> tuple[str, int]:
    return (lease.work.work_id, lease.epoch)


def done(lease: Lease, name: str = "r", want: int = 0, number: int = 1) -> Report:
    message_id = f"{lease.work.work_id}@{lease.epoch}.{number}"
    report = Done(message_id, lease.work.run_id, lease.epoch, ending=Ending("ok", 7))
    return Report(name, lease.work.execution_id, report, want)


async def claimed(worker: Worker, name: str = "c", wait_s: float = 10.0) -> Lease:
    answer = await worker.leases(Claim(name, 1, wait_s))
    assert len(answer.leases) == 1
    return answer.leases[0]


async def kept(worker: Worker, name: str = "c") -> Lease:
    """Claim and acknowledge."""
    lease = await claimed(worker, name)
    await worker.send(Ack((held(lease),)))
    assert replace(await worker.ask(Heartbeat((held(lease),), "h")), now=0) == Stop((), "h")
    return lease


async def test_a_step_is_claimed_acknowledged_and_reported(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served) as worker:
        started = await served.start(ONE, payload={"n": 5})
        lease = await kept(worker)
        assert lease.work.step == "one"
        assert lease.work.scopes["workload"] == {"n": 5}
        answer = await worker.leases(done(lease))
        assert (answer.status, answer.leases) == ("applied", ())
        assert (await served.until(started, "completed"))["result"] == 7


async def test_a_waiting_claim_gets_new_work_and_a_report_brings_the_next(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served) as worker:
        await worker.send(Claim("c", 1, 20.0))
        started = await served.start(TWO)
        answer = await worker.receive()
        assert isinstance(answer, Leases)
        second = (await worker.leases(done(answer.leases[0], want=1))).leases[0]
        assert (answer.leases[0].work.step, second.work.step) == ("one", "two")
        await worker.leases(done(second))
        await served.until(started, "completed")


async def test_repeating_a_claim_or_a_report_is_harmless(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served) as worker:
        started = await served.start(TWO)
        first = await claimed(worker, "c1")
        assert (await worker.leases(Claim("c1", 1, 0.0))).leases == (first,)
        given = await worker.leases(done(first, "r1", want=1))
        again = await worker.leases(done(first, "r1"))
        assert again.status == "duplicate"
        assert [held(lease) for lease in again.leases] == [held(lease) for lease in given.leases]
        await worker.leases(done(given.leases[0]))
        await served.until(started, "completed")
        events = await served.json("GET", f"/api/executions/{started}/events?type=step.done")
        assert [event["step"] for event in events["events"]] == ["one", "two"]


async def test_a_hand_off_that_is_not_acknowledged_goes_back_with_a_new_epoch(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        served.services.registry._ack_ms = 50
        await served.start(ONE)
        async with session(served, "deaf") as deaf, session(served, "other") as other:
            lost = await claimed(deaf)
            found = await claimed(other, wait_s=20.0)
            assert found.work.work_id == lost.work.work_id
            assert found.epoch > lost.epoch
            assert found.attempt == lost.attempt, "a delivery that nobody saw is not counted"
            assert (await deaf.leases(done(lost))).status == "late"


async def test_heartbeats_keep_leases_and_name_what_was_lost(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served) as worker:
        await served.start(ONE)
        lease = await claimed(worker)
        answer = await worker.ask(Heartbeat((held(lease), ("1:none#1", 3)), "h"))
        assert replace(answer, now=0) == Stop(("1:none#1",), "h")


async def test_cancelling_stops_work_at_once(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served) as worker:
        started = await served.start(ONE)
        lease = await kept(worker)
        await served.json("POST", f"/api/executions/{started}/cancel", {"reason": "enough"})
        assert await worker.receive() == Stop((lease.work.work_id,))
        assert (await worker.leases(done(lease))).status == "late"


async def test_released_work_goes_to_another_and_a_draining_worker_gets_none(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served, "a") as one, session(served, "b") as two:
        await served.start(ONE)
        lease = await claimed(one)
        await one.send(Drain())
        assert isinstance(await one.receive(), Drain)
        await one.send(Release((held(lease),)))
        assert (await claimed(two)).work.work_id == lease.work.work_id
        await served.start(ONE)
        assert (await one.leases(Claim("c2", 1, 0.0))).leases == ()


async def test_a_worker_that_comes_back_keeps_its_work(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        served.services.registry._reconnect_ms = 10_000
        started = await served.start(ONE)
        async with session(served) as worker:
            lease = await kept(worker)
        async with session(served, held=(held(lease),)) as worker:
            assert (await worker.leases(done(lease))).status == "applied"
        await served.until(started, "completed")


async def test_the_leases_of_a_session_that_stays_closed_run_out_and_count(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        served.services.registry._reconnect_ms = 20
        await served.start(ONE)
        async with session(served, "gone") as worker:
            lease = await kept(worker)
        async with session(served, "next") as other:
            found = await claimed(other, wait_s=20.0)
        assert found.work.work_id == lease.work.work_id
        assert found.attempt == lease.attempt + 1


async def test_nobody_can_report_on_anothers_work(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served, "mine") as mine, session(served, "thief") as thief:
        started = await served.start(ONE)
        lease = await kept(mine)
        assert (await thief.leases(done(lease, number=9))).status == "late"
        assert (await mine.leases(done(lease))).status == "applied"
        assert (await served.until(started, "completed"))["result"] == 7


async def test_work_goes_to_the_pool_that_it_names(tmp_path: Path) -> None:
    text = ONE.replace("    tool:", "    spec: {pool: gpu}\n    tool:").replace("test/one", "test/gpu")
    async with (
        listening(tmp_path) as served,
        session(served, "a") as plain,
        session(served, "b", pools=("gpu",)) as gpu,
    ):
        await served.start(text)
        assert (await plain.leases(Claim("c", 1, 0.0))).leases == ()
        assert (await claimed(gpu)).work.pool == "gpu"


async def test_what_cannot_be_read_is_refused_and_the_session_goes_on(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served) as worker:
        for raw in (b"{", b"[]", b'{"type":"claim"}', b'{"type":"nonsense"}', b"[" * 5000, b'{"type":"claim","id":1}'):
            await worker.socket.send(raw)
            answer = await worker.receive()
            assert isinstance(answer, Refused), raw
            assert answer.problem["status"] in (400, 422)
        assert (await worker.leases(Claim("c"))).leases == ()


async def test_whoever_does_not_say_hello_first_is_sent_away(tmp_path: Path) -> None:
    async with (
        listening(tmp_path) as served,
        connect(served.url.replace("http", "ws") + "/api/worker/session") as socket,
    ):
        assert isinstance(await Worker(socket).ask(Claim("c")), Refused)
        await socket.wait_closed()
        assert socket.close_code == 1008


async def test_sessions_end_when_the_server_stops_and_keep_their_leases(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        await served.start(ONE)
        async with session(served) as worker:
            lease = await kept(worker)
            served.services.stopping.set()
            await worker.socket.wait_closed()
            assert worker.socket.close_code == 1012
        assert await served.services.store.extend("w1", [held(lease)], lease.until) == []


async def test_a_worker_is_listed_drained_and_gone(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        served.services.registry._reconnect_ms = 10
        async with session(served, "w1", pools=("gpu",), tags=("a100",), capacity=3) as worker:
            (row,) = (await served.json("GET", "/api/workers"))["workers"]
            assert (row["worker_id"], row["pool"], row["tags"], row["capacity"]) == ("w1", "gpu", ["a100"], 3)
            await served.json("POST", "/api/workers/w1/drain")
            assert isinstance(await worker.receive(), Drain)
        await happens(lambda: served.services.registry.workers == 0, "the worker was forgotten")
        (row,) = (await served.json("GET", "/api/workers"))["workers"]
        assert row["status"] == "gone"


async def test_a_signal_wakes_work_that_no_worker_holds(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served) as worker:
        started = await served.start(WAITS)
        lease = await kept(worker)
        report = Done("m1", lease.work.run_id, lease.epoch, suspension=Suspension("wait", {}, signal="go"))
        await worker.leases(Report("r", started, report))
        await served.until(started, "waiting")
        await worker.send(Claim("c2", 1, 20.0))
        await served.json("POST", f"/api/executions/{started}/signal", {"name": "go", "data": 3})
        answer = await worker.receive()
        assert isinstance(answer, Leases)
        assert answer.leases[0].work.resume is not None


async def test_hello_on_a_new_connection_takes_the_place_of_the_old(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served, "w") as old, session(served, "w") as new:
        served.services.registry._reconnect_ms = 1
        await served.start(ONE)
        lease = await kept(new)
        await old.socket.close()
        assert replace(await new.ask(Heartbeat((held(lease),), "h")), now=0) == Stop((), "h")
        assert (await new.leases(done(lease))).status == "applied"


async def test_the_frames_are_what_the_wire_says() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Hello("w"))) == {"type": "hello", "worker": "w"}
    assert msgspec.json.decode(msgspec.json.encode(Welcome("w", "s", 30_000, 1_000)))["type"] == "welcome"


async def test_more_frames_than_are_served_at_once_all_get_their_answer(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, session(served) as worker:
        names = [str(number) for number in range(600)]
        for name in names:
            await worker.send(Heartbeat((), name))
        assert {replace(await worker.receive(), now=0) for _ in names} == {Stop((), name) for name in names}
