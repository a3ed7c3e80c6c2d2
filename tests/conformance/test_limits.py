"""`concurrency` and `rate` on every store: never too many, and none is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from noetl.clock import SteadyClock
from noetl.engine.state.evolve import fold
from noetl.model.errors import LimitReached, StoreUnavailable
from noetl.model.messages import Cancel, Pause, Report, Signal, Start, Suspension, Unpause
from noetl.model.work import PLAYBOOK_LIMITS, Lease
from noetl.server.background.flow.admissions import Admissions
from noetl.server.control_plane import LocalControlPlane
from noetl.server.operations.forks import fork_from
from tests.conformance.conftest import Place, Store, Team
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


async def test_a_new_execution_replaces_the_running_one(store: Store, team: Team) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, limited(concurrency="{on_limit: cancel_running}"))
        names = [await begin(control, playbook) for _ in range(3)]
        old = [await ended(control, store, name) for name in names[:2]]
        assert [row["status"] for row in old] == ["cancelled", "cancelled"]
        assert all("replaced by execution" in row["error"]["message"] for row in old)
        noted = [one for one in await team.audited() if one.action == "execution.cancel"]
        assert {(one.entity, one.detail["key"]) for one in noted} == {(name, "tests/test") for name in names[:2]}
        assert all(one.actor.startswith("concurrency:") for one in noted)
        await begun(control, names[2])


async def test_only_who_replaces_others_is_replaced_by_another_playbook(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        waits = await register(store, limited(concurrency="{key: k}"), "other/waits")
        replaces = await register(store, limited(concurrency="{key: k, on_limit: cancel_running}"))
        await control.submit("61", Start("start-61", "other/waits", waits))
        names = [await begin(control, replaces) for _ in range(2)]
        assert (await ended(control, store, names[0]))["status"] == "cancelled"
        assert await statuses(store, "61", names[1]) == ["running", "pending"]
        await finish(control)
        await begun(control, names[1])
        assert await statuses(store, "61") == ["completed"]


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


TWO = "workflow:\n  - {step: one, tool: {kind: noop}, next: two}\n  - {step: two, tool: {kind: noop}}\n"
ASKS = (
    "workflow:\n  - {step: both, next: [ask, nap]}\n  - {step: ask, tool: {kind: wait, signal: go}}\n"
    "  - {step: nap, tool: {kind: noop}}\n"
)


async def fork(control: LocalControlPlane, store: Store, source: str, start: str, name: str, **more: Any) -> None:
    given: dict[str, Any] = {"ctx": {}, "workload": {}, "at": SteadyClock().now(), **more}
    await fork_from(store, control, source, name, start, **given)


async def one_of_two(control: LocalControlPlane, store: Store, on_limit: str) -> tuple[str, str]:
    """Return an execution that has ended, and one that holds the only place."""
    text = limited(concurrency=f"{{on_limit: {on_limit}}}").replace(STEPS, TWO)
    playbook = await register(store, text)
    first = await begin(control, playbook)
    for _ in range(2):
        await finish(control)
    await ended(control, store, first)
    return first, await begin(control, playbook)


async def test_a_fork_waits_for_a_place_like_a_start(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        first, second = await one_of_two(control, store, "queue")
        await fork(control, store, first, "two", "77", ctx={"a": 1})
        assert await statuses(store, second, "77") == ["running", "pending"]
        assert await store.holders("tests/test") == [second]
        assert [row["execution_id"] for row in await store.queued("tests/test", 9)] == ["77"]
        served = [(await finish(control)).work for _ in range(3)]
        assert [(one.execution_id, one.step) for one in served] == [(second, "one"), (second, "two"), ("77", "two")]
        assert (await ended(control, store, "77"))["status"] == "completed"
        assert await store.holders("tests/test") == []
        events = await store.read("77")
        assert fold("77", events).ctx["a"] == 1
        assert [one.event_type for one in events].count("playbook.started") == 1


async def test_a_fork_takes_a_free_place(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        first, second = await one_of_two(control, store, "queue")
        await control.submit(second, Cancel("cancel"))
        await fork(control, store, first, "two", "77")
        assert await store.holders("tests/test") == ["77"]
        await fork(control, store, first, "two", "78")
        assert await statuses(store, "77", "78") == ["running", "pending"]
        await control.submit("78", Cancel("cancel"))
        assert await statuses(store, "78") == ["cancelled"]
        assert await store.queued_keys() == []


async def test_a_fork_beyond_the_limit_is_rejected_or_replaces(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        first, second = await one_of_two(control, store, "reject")
        with pytest.raises(LimitReached, match="run already"):
            await fork(control, store, first, "two", "77")
        assert await store.execution("77") is None
        await control.submit(second, Cancel("cancel"))
        first, second = await one_of_two(control, store, "cancel_running")
        await fork(control, store, first, "two", "78")
        assert (await ended(control, store, second))["status"] == "cancelled"
        await finish(control)
        assert (await ended(control, store, "78"))["status"] == "completed"


async def test_a_queued_fork_keeps_signals_and_time_limits(store: Store) -> None:
    """Its work is handed out, and its time limit begins, when it is admitted."""
    async with LocalControlPlane(store, SteadyClock()) as control:
        text = limited(concurrency="{limit: 1}", timeout_s="3600").replace(STEPS, ASKS)
        playbook = await register(store, text)
        first = await begin(control, playbook)
        [ask] = [one for one in await control.claim("w", [""], 2, 10.0) if one.work.step == "ask"]
        waits = Suspension("wait", {}, signal="go")
        await report_on(control, first, Report("suspend", ask.work.run_id, ask.epoch, "w", suspension=waits))
        at = str(len(await store.read(first)))
        await fork(control, store, first, at, "77")
        assert await control.claim("v", [""], 1, 0.0) == []
        await control.submit("77", Signal("signal", "go", {"n": 1}))
        assert fold("77", await store.read("77")).phase == "queued"
        await control.submit(first, Cancel("cancel"))
        leases = [lease for _ in range(2) for lease in await control.claim("v", [""], 1, 10.0)]
        assert {lease.work.execution_id for lease in leases} == {"77"}
        assert {lease.work.step for lease in leases} == {"ask", "nap"}
        state = fold("77", await store.read("77"))
        assert state.timers["execution"].at >= state.started_at + 3_600_000
        for lease in leases:
            await report_on(control, "77", done(lease))
        assert (await ended(control, store, "77"))["status"] == "completed"


def _slot(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row["slot"][name] for name in ("group", "limit", "queued")}


async def test_parked_steps_are_counted_until_their_gate_opens(store: Store, team: Team) -> None:
    """A step counts once, however many tokens wait at its gate."""
    gated = """
workflow:
  - step: split
    next: {spec: {mode: inclusive}, arcs: [{step: pay}, {step: pay}, {step: ship}]}
  - step: pay
    spec: {join: each, policy: {admit: {rules: [{when: "{{ ctx.signals.paid is defined }}", then: {allow: true}}]}}}
    tool: {kind: noop}
  - step: ship
    spec: {policy: {admit: {rules: [{when: "{{ ctx.signals.packed is defined }}", then: {allow: true}}]}}}
    tool: {kind: noop}
"""
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, f"{HEAD}{gated}")
        one, two = [await begin(control, playbook) for _ in range(2)]
        assert await team.parked() == {"tests/test": 4}
        await control.submit(one, Signal("paid", "paid"))
        assert await team.parked() == {"tests/test": 3}
        await control.submit(two, Cancel("cancel"))
        assert await team.parked() == {"tests/test": 1}
        row = await store.execution(one)
        assert row is not None
        assert row["parked"] == 1


async def test_a_limit_of_the_server_counts_all_playbooks_of_its_pattern(store: Store, team: Team) -> None:
    defaults = {PLAYBOOK_LIMITS: {"other/*": 1, "tests/*": 2, "*": 1}}
    async with LocalControlPlane(store, SteadyClock(), defaults=defaults) as control:
        plain = await register(store, f"{HEAD}{STEPS}")
        own = await register(store, limited(concurrency='{key: "of {{ workload.customer }}", limit: 5}'))
        names = [await begin(control, playbook) for playbook in (plain, own, own, plain)]
        assert await statuses(store, *names) == ["running", "running", "pending", "pending"]
        assert await store.holders("playbook tests/*") == names[:2]
        assert await store.holders("of a") == [names[1]]
        rows = [(row["group"], row["running"], row["waiting"]) for row in await team.limits()]
        assert rows == [("of a", 1, 1), ("playbook tests/*", 2, 2)]
        served = {(await finish(control)).work.execution_id for _ in names}
        assert served == set(names)
        for name in names:
            await ended(control, store, name)
        assert await team.limits() == []


async def test_servers_that_start_at_once_admit_no_more_than_the_server_allows(place: Place) -> None:
    one, two = place.open(), place.open()
    defaults = {PLAYBOOK_LIMITS: {"tests/*": 3}}
    async with (
        LocalControlPlane(one, SteadyClock(), defaults=defaults) as first,
        LocalControlPlane(two, SteadyClock(), defaults=defaults) as second,
    ):
        own = await register(one, limited(concurrency='{key: "{{ workload.customer }}", limit: 9}'))
        plain = await register(one, f"{HEAD}{STEPS}")
        starts = [begin(plane, playbook) for _ in range(4) for plane in (first, second) for playbook in (own, plain)]
        names = await asyncio.gather(*starts)
        assert sorted(await statuses(one, *names)) == ["pending"] * 13 + ["running"] * 3
        assert len(await one.holders("playbook tests/*")) == 3


async def test_a_changed_limit_of_the_server_holds_for_those_that_wait(place: Place) -> None:
    store = place.open()
    playbook, names = await register(store, f"{HEAD}{STEPS}"), ["51", "52", "53", "54"]
    async with LocalControlPlane(store, SteadyClock(), defaults={PLAYBOOK_LIMITS: {"tests/*": 1}}) as control:
        for name in names:
            await begin(control, playbook, name)
        assert await statuses(store, *names) == ["running", "pending", "pending", "pending"]
    async with LocalControlPlane(store, SteadyClock(), defaults={PLAYBOOK_LIMITS: {"tests/*": 3}}) as control:
        await begun(control, "52")
        await begun(control, "53")
        assert await statuses(store, *names) == ["running", "running", "running", "pending"]
    async with LocalControlPlane(store, SteadyClock(), defaults={PLAYBOOK_LIMITS: {"tests/*": 2}}) as control:
        await finish(control)
        await asyncio.sleep(0.2)  # time in which the old limit would admit it
        assert (await statuses(store, *names)).count("pending") == 1
    async with LocalControlPlane(store, SteadyClock()) as control:
        await begun(control, "54")
        while await store.queued_keys():
            await asyncio.sleep(0.01)


async def test_a_start_within_its_own_limit_waits_behind_older_ones_of_the_key(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        narrow = await register(store, limited(concurrency="{key: k, limit: 1}"))
        wide = await register(store, limited(concurrency="{key: k, limit: 2}"))
        names = [await begin(control, playbook) for playbook in (narrow, narrow, wide, wide)]
        assert await statuses(store, *names) == ["running", "pending", "pending", "pending"]
        served = [(await finish(control)).work.execution_id for _ in names]
        assert served[:2] == names[:2]
        assert sorted(served) == names


async def test_a_start_does_not_wait_behind_a_paused_one(store: Store) -> None:
    async with LocalControlPlane(store, SteadyClock()) as control:
        playbook = await register(store, limited(concurrency="{limit: 1}"))
        first, second = [await begin(control, playbook) for _ in range(2)]
        await control.submit(second, Pause("pause"))
        await finish(control)
        await ended(control, store, first)
        third = await begin(control, playbook)
        assert await statuses(store, second, third) == ["paused", "running"]
