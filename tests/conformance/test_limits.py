"""`concurrency` and `rate` on every store: never too many, and none is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from noetl.clock import SteadyClock
from noetl.engine.state.evolve import fold
from noetl.model.errors import LimitReached, StoreUnavailable
from noetl.model.messages import Cancel, Pause, Start, Unpause
from noetl.model.work import Lease
from noetl.server.background.flow.admissions import Admissions
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import HEAD, begin, done, ended, register, report_on

pytestmark = pytest.mark.asyncio
STEPS = "workflow:\n  - step: one\n    tool: {kind: noop}\n"


def limited(**spec: str) -> str:
    lines = "".join(f"    {name}: {value}\n" for name, value in spec.items())
    return f"{HEAD}workload: {{customer: a}}\nexecutor:\n  spec:\n{lines}{STEPS}"


async def statuses(store: Store, *names: str) -> list[Any]:
    return [(await store.execution(name) or {}).get("status") for name in names]


async def begun(control: LocalControlPlane, name: str) -> None:
    """Wait until an execution has begun."""
    async with asyncio.timeout(20):
        async for event in control.follow(name):
            if event.event_type == "playbook.started":
                return


async def finish(control: LocalControlPlane, worker: str = "w") -> Lease:
    """Take one piece of work and end it."""
    [lease] = await control.claim(worker, [""], 1, 10.0)
    await report_on(control, lease.work.execution_id, done(lease))
    return lease


async def test_one_runs_and_the_others_wait_in_their_order(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, limited(concurrency="{limit: 1}"))
        names = [await begin(control, playbook) for _ in range(3)]
        assert await statuses(store, *names) == ["running", "pending", "pending"]
        assert await store.queued_keys() == ["tests/test"]
        assert [row["execution_id"] for row in await store.queued("tests/test", 9)] == names[1:]
        served = [(await finish(control)).work.execution_id for _ in names]
        assert served == names
        assert [(await ended(control, store, name))["status"] for name in names] == ["completed"] * 3
        assert await store.queued_keys() == []
        assert await store.holders("tests/test") == []


async def test_each_key_has_its_own_limit(store: Store) -> None:
    text = limited(concurrency='{key: "customer {{ workload.customer }}", limit: 2}')
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, text)
        names = [await begin(control, playbook, payload={"customer": who}) for who in "aaabb"]
        assert await statuses(store, *names) == ["running", "running", "pending", "running", "running"]
        assert await store.holders("customer a") == names[:2]


async def test_an_execution_beyond_the_limit_is_rejected(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, limited(concurrency="{on_limit: reject}"))
        first = await begin(control, playbook)
        with pytest.raises(LimitReached, match="concurrency key 'tests/test' run already"):
            await begin(control, playbook, "77")
        assert await store.execution("77") is None
        await finish(control)
        await ended(control, store, first)
        await begin(control, playbook, "77")
        assert await statuses(store, "77") == ["running"]


async def test_a_new_execution_replaces_the_running_one(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, limited(concurrency="{on_limit: cancel_running}"))
        names = [await begin(control, playbook) for _ in range(3)]
        old = [await ended(control, store, name) for name in names[:2]]
        assert [row["status"] for row in old] == ["cancelled", "cancelled"]
        assert all("replaced by execution" in row["error"]["message"] for row in old)
        await begun(control, names[2])


async def test_a_waiting_execution_can_be_cancelled_and_paused(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, limited(concurrency="{limit: 1}"))
        first, second, third = [await begin(control, playbook) for _ in range(3)]
        await control.submit(second, Cancel("cancel"))
        await control.submit(third, Pause("pause"))
        assert await statuses(store, second, third) == ["cancelled", "paused"]
        await finish(control)
        await ended(control, store, first)
        assert await statuses(store, third) == ["paused"]
        await control.submit(third, Unpause("unpause"))
        await begun(control, third)


async def test_a_rate_spreads_the_beginnings(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, limited(rate="{per_second: 20, burst: 2}"))
        names = [await begin(control, playbook) for _ in range(5)]
        for name in names:
            await begun(control, name)
    times = sorted([await _admitted_at(store, name) for name in names])
    after = [at - times[0] for at in times]
    assert [ms + 1 >= wanted for ms, wanted in zip(after, (0, 0, 50, 100, 150), strict=True)] == [True] * 5


async def _admitted_at(store: Store, name: str) -> int:
    return next(event.timestamp for event in await store.read(name) if event.event_type == "execution.admitted")


async def test_two_servers_never_admit_too_many(place: Place) -> None:
    first, second = place.open(), place.open()
    async with (
        LocalControlPlane(first, SteadyClock(), look_s=0.01) as one,
        LocalControlPlane(second, SteadyClock(), look_s=0.01) as two,
    ):
        playbook = await register(first, limited(concurrency="{limit: 3}"))
        await asyncio.gather(*(begin(control, playbook) for control in (one, two) * 8))
        for turn in range(16):
            assert len(await first.holders("tests/test")) <= 3
            await finish((one, two)[turn % 2], f"w{turn}")
        rows = [await first.queued_keys(), await first.holders("tests/test")]
    assert rows == [[], []]


async def test_a_server_that_starts_admits_those_that_wait(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_self: Admissions) -> float:
        raise StoreUnavailable

    store = place.open()
    with monkeypatch.context() as patched:
        patched.setattr(Admissions, "look", fail)  # as a server that dies before it admits the next
        async with LocalControlPlane(store, SteadyClock()) as control:
            playbook = await register(store, limited(concurrency="{limit: 1}"))
            names = [await begin(control, playbook) for _ in range(2)]
            await control.submit(names[0], Cancel("cancel"))
    assert await statuses(store, *names) == ["cancelled", "pending"]
    again = place.open()
    async with LocalControlPlane(again, SteadyClock()) as other:
        await begun(other, names[1])


async def test_a_repeated_start_finds_its_execution(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, limited(concurrency="{limit: 1}"))
        await begin(control, playbook)
        start = Start("start-88", "tests/test", playbook)
        rows = [await control.submit("88", start) for _ in range(2)]
        assert [row["status"] for row in rows] == ["pending", "pending"]
        state = fold("88", await store.read("88"))
        assert (state.phase, _slot(rows[1])) == ("queued", {"group": "tests/test", "limit": 1, "queued": True})


def _slot(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row["slot"][name] for name in ("group", "limit", "queued")}
