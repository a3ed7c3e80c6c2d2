"""Liveness: deleted rows are restored from the log, running work is left alone."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from noetl.engine.handlers.decide import Decision, decide
from noetl.engine.queries.recall import recalled
from noetl.model.messages import AnyMessage, Cancel, Ending, Redrive, Report, Suspension
from noetl.model.work import Lease
from noetl.ports import Commit, DerivedRows, DerivedTables
from noetl.server.background.reconciler import Reconciler
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.cache.state_cache import StateCache
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import HEAD, RealClock, begin, done, ended, register, report_on, workers

pytestmark = pytest.mark.asyncio
CHILD = HEAD.replace("tests/test", "tests/child") + "workflow:\n  - {step: only, tool: {kind: noop}}\n"
BOOKS = {
    "work": "executor: {spec: {timeout_s: 3600}}\nworkflow:\n"
    "  - {step: one, tool: {kind: noop}, next: [two, three]}\n"
    "  - {step: two, tool: {kind: noop}}\n  - {step: three, tool: {kind: noop}}\n",
    "loop": "workflow:\n  - step: one\n    loop: {in: '{{ range(6) }}', iterator: i, spec: {mode: parallel}}\n"
    "    tool: {kind: noop}\n    next: two\n  - {step: two, tool: {kind: noop}}\n",
    "sleep": "workflow:\n  - {step: one, tool: {kind: sleep, seconds: 0.2}, next: two}\n"
    "  - {step: two, tool: {kind: noop}}\n",
    "child": "workflow:\n  - {step: one, tool: {kind: playbook, path: tests/child}, next: two}\n"
    "  - {step: two, tool: {kind: noop}}\n",
    "signal": "workflow:\n  - {step: one, tool: {kind: wait, signal: go}}\n",
}


def suspended(lease: Lease, **more: Any) -> Report:
    return Report(f"{lease.work.work_id}:{lease.epoch}", lease.work.run_id, lease.epoch, "w",
                  suspension=Suspension(pipeline={"at": 0}, **more))  # fmt: skip


async def halfway(control: LocalControlPlane, store: Store, what: str) -> None:
    """Bring an execution to where it holds what is then lost."""
    await register(store, CHILD, "tests/child")
    await begin(control, await register(store, HEAD + BOOKS[what]), "500")
    [lease, *_] = await control.claim("w", ("",), 1, 0)
    if what == "work":
        await report_on(control, "500", done(lease))
    elif what == "sleep":
        until = RealClock().now() + 200
        await report_on(control, "500", suspended(lease, cause="sleep", until=until))
    elif what == "child":
        child = {"path": "tests/child", "payload": {}}
        await report_on(control, "500", suspended(lease, cause="playbook", child=child))
    elif what == "signal":
        await report_on(control, "500", suspended(lease, cause="wait", signal="go"))


async def lose(derived: DerivedTables, *executions: str) -> list[DerivedRows]:
    """Delete all rows beside the logs but those of executions; return them."""
    rows = [await derived.rows(name) for name in executions]
    await derived.empty(0)
    await derived.put_rows([msgspec.structs.replace(row, work=(), timers=(), inbox=(), dead=()) for row in rows])
    return rows


def kinds(events: list[Any]) -> list[str]:
    return [event.event_type for event in events]


@pytest.mark.parametrize("what", ["work", "loop", "sleep"])
async def test_what_was_lost_is_put_back_and_the_execution_ends(place: Place, what: str) -> None:
    store = place.open()
    async with LocalControlPlane(store, RealClock(), lease_s=60) as control:
        await halfway(control, store, what)
    other = place.open()  # as after a crash: only what is stored is known
    derived = place.derived(other)
    [row] = await lose(derived, "500")
    async with LocalControlPlane(other, RealClock()) as control:
        watch = _watch(control, derived)
        [found] = await derived.open(0, RealClock().now(), 10)
        assert (found.execution_id, found.bare) == ("500", True)
        assert await watch.look() == ["500"]
        [told] = [event for event in await store.read("500") if event.event_type == "execution.repaired"]
        assert told.payload.get("work", []) == [item.work_id for _, item in row.work]
        assert told.payload.get("timers", []) == [name for name, _ in row.timers]
        assert await watch.look() == []  # once
        async with workers(control, 2):
            ending = await ended(control, other, "500")
    assert ending["status"] == "completed"
    assert {name: counts["done"] for name, counts in ending["steps"].items()} == dict.fromkeys(ending["steps"], 1)


async def test_one_row_of_several_is_missed_too(place: Place) -> None:
    store = place.open()
    async with LocalControlPlane(store, RealClock(), lease_s=60) as control:
        await halfway(control, store, "work")
    derived = place.derived(store)
    [row] = await lose(derived, "500")
    await derived.empty(0)
    await derived.put_rows([msgspec.structs.replace(row, work=row.work[1:])])
    async with LocalControlPlane(store, RealClock()) as control:
        assert not (await derived.open(0, RealClock().now(), 10))[0].bare
        assert await _watch(control, derived).look() == ["500"]
        assert (await store.read("500"))[-1].payload == {"work": [row.work[0][1].work_id]}


async def untold(store: Store, execution_id: str, message: AnyMessage) -> None:
    """Decide and commit a message without its messages to other executions."""
    state = await StateCache(store).get(execution_id)
    made = decide(await PlanCache(store).get(state.playbook), state, message, RealClock().now())
    assert isinstance(made, Decision)
    assert made.inbox
    receipt = await store.commit([msgspec.structs.replace(made, inbox=())])
    assert receipt.commits[0].status == "applied"


async def family(store: Store) -> tuple[str, Lease]:
    """Start a parent whose child has been leased; gives the child."""
    async with LocalControlPlane(store, RealClock(), lease_s=60) as control:
        await halfway(control, store, "child")
        [lease] = await control.claim("w", ("",), 1, 10)
        return lease.work.execution_id, lease


async def unborn(store: Store) -> None:
    """Commit the start of a child without the message to it."""
    async with LocalControlPlane(store, RealClock(), lease_s=60) as control:
        await register(store, CHILD, "tests/child")
        await begin(control, await register(store, HEAD + BOOKS["child"]), "500")
        [lease] = await control.claim("w", ("",), 1, 0)
    child = {"path": "tests/child", "payload": {}}
    await untold(store, "500", suspended(lease, cause="playbook", child=child))


async def test_an_end_that_a_parent_never_heard_of_is_told_again(place: Place) -> None:
    store = place.open()
    child, lease = await family(store)
    await untold(store, child, done(lease, {"n": 1}))
    other = place.open()
    async with LocalControlPlane(other, RealClock()) as control:
        watch = _watch(control, place.derived(other))
        assert await watch.look() == ["500"]
        assert "execution.repaired" in kinds(await other.read("500"))
        async with workers(control):
            assert (await ended(control, other, "500"))["status"] == "completed"
        assert await watch.look() == []


async def test_a_child_that_was_never_born_is_started(place: Place) -> None:
    store = place.open()
    await unborn(store)
    other = place.open()
    async with LocalControlPlane(other, RealClock()) as control:
        assert await _watch(control, place.derived(other)).look() == ["500"]
        async with workers(control):
            assert (await ended(control, other, "500"))["status"] == "completed"


async def test_a_child_that_was_never_told_is_cancelled_after_its_parent(place: Place) -> None:
    store = place.open()
    child, _ = await family(store)
    await untold(store, "500", Cancel("stop", "enough"))
    other = place.open()
    async with LocalControlPlane(other, RealClock()) as control:
        assert await _watch(control, place.derived(other)).look() == [child]
        assert (await ended(control, other, child))["status"] == "cancelled"


async def test_a_child_that_was_never_told_to_undo_what_it_did_is_told_and_waited_for(place: Place) -> None:
    store = place.open()
    child, _ = await family(store)
    await untold(store, "500", Cancel("stop", "enough", compensate=True))
    other = place.open()
    async with LocalControlPlane(other, RealClock()) as control:
        watch = _watch(control, place.derived(other))
        assert await watch.look() == [child]
        assert (await ended(control, other, child))["compensated"] is True
        row = await ended(control, other, "500")
        assert (row["status"], row["compensated"]) == ("cancelled", True)
        assert [event.payload["undo"] for event in await other.read("500") if event.event_type == "step.failed"] == [
            True
        ]
        assert await watch.look() == []


async def test_a_child_that_was_cancelled_before_it_was_born_is_not_waited_for(place: Place) -> None:
    store = place.open()
    await unborn(store)
    await untold(store, "500", Cancel("stop", "enough", compensate=True))
    other = place.open()
    async with LocalControlPlane(other, RealClock()) as control:
        assert await _watch(control, place.derived(other)).look() == ["500"]
        assert (await ended(control, other, "500"))["status"] == "cancelled"


async def test_whoever_waits_or_works_is_left_alone(place: Place) -> None:
    store = place.open()
    derived = place.derived(store)
    async with LocalControlPlane(store, RealClock()) as control:
        for what in ("signal", "sleep", "loop"):
            await register(store, CHILD, "tests/child")
            await begin(control, await register(store, HEAD + BOOKS[what], f"tests/{what}"), f"60{len(what)}")
        await halfway(control, store, "signal")
        watch = _watch(control, derived)
        for _ in range(3):
            assert await watch.look() == []


async def test_no_false_alarm_while_executions_run(place: Place) -> None:
    """Reconciles running executions all the time, on their server and on another."""
    store, other = place.open(), place.open()
    async with LocalControlPlane(store, RealClock()) as control, LocalControlPlane(other, RealClock()) as second:
        watches = [_watch(control, place.derived(store)), _watch(second, place.derived(other))]
        await register(store, CHILD, "tests/child")
        books = [await register(store, HEAD + BOOKS[what], f"tests/{what}") for what in ("work", "loop")]
        names = [await begin(control, books[number % 2], str(700 + number)) for number in range(10)]
        over = asyncio.Event()

        async def look(watch: Reconciler) -> list[str]:
            found: list[str] = []
            while not over.is_set():
                found += await watch.look()
                await asyncio.sleep(0.02)
            return found

        looking = [asyncio.create_task(look(watch)) for watch in watches]
        async with workers(control), workers(second):
            for name in names:
                await ended(control, store, name)
        over.set()
        assert await asyncio.gather(*looking) == [[], []]
        for name in names:
            assert "execution.repaired" not in kinds(await store.read(name))


async def test_work_without_a_delivery_left_is_given_up_though_nobody_was_told(place: Place) -> None:
    store = place.open()
    derived = place.derived(store)
    async with LocalControlPlane(store, RealClock()) as control:
        await halfway(control, store, "loop")
    await store.expire("500", RealClock().now())
    await store.expired(RealClock().now() + 1, 1)  # the last delivery
    assert (await derived.rows("500")).dead
    other = place.open()
    derived = place.derived(other)
    [(_, message)] = await other.inbox(10)
    last = (await derived.rows("500")).last_seq
    gone = await other.commit([Commit("500", last, (), consumed=(message.message_id,))])
    assert gone.commits[0].status == "applied"
    async with LocalControlPlane(other, RealClock()) as control:
        assert await _watch(control, derived).look() == ["500"]
        async with workers(control):
            assert (await ended(control, other, "500"))["status"] == "failed"


async def test_the_work_of_a_replay_is_put_back_though_its_execution_has_ended(place: Place) -> None:
    store = place.open()
    derived = place.derived(store)
    async with LocalControlPlane(store, RealClock(), lease_s=60) as control:
        await begin(control, await register(store), "500")
        [lease] = await control.claim("w", ("",), 1, 0)
        error = {"kind": "client_error", "message": "no", "retryable": False}
        failed = Report("failed", lease.work.run_id, lease.epoch, "w", ending=Ending("error", None, error))
        await report_on(control, "500", failed)
        letters = await derived.letters_of("500")
        again = recalled(await store.read("500"), letters)
        await control.submit("500", Redrive("replay", tuple(again.values())))
        [(_, item)] = (await derived.rows("500")).work
    other = place.open()
    derived = place.derived(other)
    last = (await derived.rows("500")).last_seq
    gone = await other.commit([Commit("500", last, (), dropped=(item.work_id,))])
    assert gone.commits[0].status == "applied"
    async with LocalControlPlane(other, RealClock()) as control:
        [found] = await derived.open(0, RealClock().now(), 10)
        assert (found.execution_id, found.bare) == ("500", True)
        watch = _watch(control, derived)
        assert await watch.look() == ["500"]
        assert (await other.read("500"))[-1].payload == {"work": [item.work_id]}
        [lease] = await control.claim("w", ("",), 1, 0)
        await report_on(control, "500", done(lease, 7))
        assert "step.repaired" in kinds(await other.read("500"))
        assert await derived.open(0, RealClock().now(), 10) == []


async def test_one_of_several_has_the_duty_until_its_term_is_over(derived: DerivedTables) -> None:
    assert await derived.on_duty("liveness", "a", 100, 200)
    assert not await derived.on_duty("liveness", "b", 150, 250)
    assert await derived.on_duty("other", "b", 150, 250)
    assert await derived.on_duty("liveness", "a", 150, 250)
    assert not await derived.on_duty("liveness", "b", 249, 350)
    assert await derived.on_duty("liveness", "b", 250, 350)


async def test_executions_that_have_not_ended_are_given_page_by_page(place: Place) -> None:
    store, clock = place.open(), RealClock()  # one clock: two differ by a millisecond
    async with LocalControlPlane(store, clock) as control, workers(control):
        book = await register(store)
        for name in ("801", "802", "803", "804"):
            await begin(control, book, name, pool="" if name == "802" else "nobody")
        await ended(control, store, "802")
    derived, now = place.derived(store), clock.now()
    page = await derived.open(0, now, 2)
    assert [one.execution_id for one in page] == ["801", "803"]
    assert [one.execution_id for one in await derived.open(page[-1].number, now, 2)] == ["804"]
    assert await derived.open(0, 1, 2) == []  # too young


def _watch(control: LocalControlPlane, derived: DerivedTables) -> Reconciler:
    watch = control.reconciler(derived)
    watch._old_enough_s = -1  # at once
    return watch
