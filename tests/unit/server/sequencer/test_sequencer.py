"""The sequencer: batches, answers after commit, retries of conflicts, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from noetl.engine.handlers.decide import Decision, NeedsLoad, decide
from noetl.engine.plan.plan import Plan
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, checksum
from noetl.model.errors import (
    Conflict,
    Foreign,
    InvalidInput,
    InvalidPayload,
    Overloaded,
    StoreUnavailable,
    Undecided,
    UnknownExecution,
)
from noetl.model.events import Event
from noetl.model.messages import AnyMessage, Cancel, ChildEnded, Pause, Report, Signal, Start, Suspension
from noetl.model.work import Lease
from noetl.ports import Claim, Commit, Receipt, Selection
from noetl.ports.log import SavedState
from noetl.ports.work import Answer
from noetl.server.cache.state_cache import StateCache
from noetl.server.control_plane import LocalControlPlane, Store
from noetl.server.sequencer.commits import refuse_taken_id
from noetl.server.sequencer.inbox import Entry
from noetl.stores.memory.store import MemoryStore
from noetl.stores.sqlite.store import SqliteStore
from tests.unit.server.system import HEAD, ONE_STEP, RealClock, begin, chain, done, ended, register, report_on, workers

pytestmark = pytest.mark.asyncio
FAN = (
    HEAD
    + """
workflow:
  - step: a
    tool: {kind: noop}
    next: [b, c, d]
  - {step: b, tool: {kind: noop}, next: e}
  - {step: c, tool: {kind: noop}, next: e}
  - {step: d, tool: {kind: noop}, next: e}
  - step: e
    loop: {in: "{{ range(40) }}", iterator: x, spec: {mode: parallel, max_in_flight: 8}}
    tool: {kind: noop}
"""
)
WAITING = (
    HEAD
    + """
workflow:
  - step: gate
    spec: {policy: {admit: {rules: [{when: "{{ ctx.open }}", then: {allow: true}}]}}}
    tool: {kind: noop}
"""
)


async def types(store: Store, execution_id: str) -> list[str]:
    return [event.event_type for event in await store.read(execution_id)]


async def test_an_execution_runs_to_its_end(store: Store, control: LocalControlPlane) -> None:
    async with workers(control, 3):
        execution_id = await begin(control, await register(store, FAN))
        row = await ended(control, store, execution_id)
    assert row["status"] == "completed"
    assert row["steps"]["e"]["done"] == 1
    events = await store.read(execution_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len({event.event_id for event in events}) == len(events)
    assert await store.claim("w", [""], 10, 2**60, 2**60) == []
    assert await store.inbox(10) == []
    assert await store.due(2**60, 10) == []


async def test_an_execution_is_not_started_under_the_id_refuse_taken_id(
    store: Store, control: LocalControlPlane
) -> None:
    playbook = await register(store, WAITING)
    first = Start("first", "a", playbook, {"n": 1})
    row = await control.submit("77", first)
    assert await control.submit("77", first) == row
    with pytest.raises(Conflict, match="77 is that of another execution"):
        await control.submit("77", Start("second", "a", playbook, {"n": 2}))
    told = await asyncio.gather(
        *(control.submit("78", Start(name, "a", playbook, {"n": name})) for name in ("one", "two")),
        return_exceptions=True,
    )
    assert sorted(isinstance(answer, Conflict) for answer in told) == [False, True]


async def test_the_parent_of_a_child_whose_id_is_taken_is_told(store: Store, control: LocalControlPlane) -> None:
    playbook = await register(store, WAITING)
    await control.submit("77", Start("first", "a", playbook))
    state = await control.sequencer.state("77")
    child = Start("5/0", "a", playbook, parent={"execution_id": "5", "run_id": "call#1"})
    told = await refuse_taken_id(store, Entry("77", child, is_own=True), child, state)
    assert told is not None
    assert (told.expected_seq, told.events, told.consumed) == (state.seq, (), ("5/0",))
    [(parent, message)] = told.inbox
    assert isinstance(message, ChildEnded)
    assert (parent, message.run_id, message.child_id, message.status) == ("5", "call#1", "77", "failed")
    assert message.error is not None
    assert (message.error["code"], message.error["retryable"]) == ("ID_TAKEN", True)
    assert await refuse_taken_id(store, Entry("77", child, is_own=True), Start("first", "a", playbook), state) is None
    assert await refuse_taken_id(store, Entry("78", child, is_own=True), child, Execution("78")) is None


async def test_the_state_in_memory_is_the_fold_of_the_log(store: Store) -> None:
    async with LocalControlPlane(store, RealClock(), snapshot_every=7) as control, workers(control, 2):
        execution_id = await begin(control, await register(store, FAN))
        await ended(control, store, execution_id)
        live = await control.sequencer._states.get(execution_id)
    folded = fold(execution_id, await store.read(execution_id))
    assert checksum(live) == checksum(folded)
    assert checksum(await StateCache(store).get(execution_id)) == checksum(folded)  # snapshot and tail


async def test_many_executions_share_commits(tmp_path: Path) -> None:
    class Counting(SqliteStore):
        batches: list[int]

        async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
            self.batches.append(len(commits))
            return await super().commit(commits, claims)

    store = Counting(tmp_path / "noetl.db")
    store.batches = []
    playbook = await register(store)
    async with LocalControlPlane(store, RealClock()) as control:
        await asyncio.gather(*(begin(control, playbook) for _ in range(200)))
    assert sum(store.batches) == 200
    assert len(store.batches) < 20
    await store.close()


async def test_a_batch_is_answered_in_full_when_room_is_short(store: Store) -> None:
    playbook = await register(store)
    async with LocalControlPlane(store, RealClock(), most_unanswered=2) as control:
        ids = await asyncio.gather(*(begin(control, playbook) for _ in range(30)))
    assert len({row["execution_id"] for row in await store.executions(Selection(limit=100))} & set(ids)) == 30


async def test_reporting_a_step_gives_the_next_one(store: Store, control: LocalControlPlane) -> None:
    playbook = await register(store, chain(3))
    assert await control.claim("w", [""], 1, 0) == []
    execution_id = await begin(control, playbook)
    [lease] = await control.claim("w", [""], 5, 0)
    for step in ("s1", "s2"):
        [lease] = await report_on(control, execution_id, done(lease), want=2)
        assert lease.work.step == step
    assert await report_on(control, execution_id, done(lease), want=2) == []
    row = await store.execution(execution_id)
    assert row is not None
    assert row["status"] == "completed"


async def test_a_report_sent_again_changes_nothing_and_gives_the_same_work(
    store: Store, control: LocalControlPlane
) -> None:
    execution_id = await begin(control, await register(store, chain(3)))
    [lease] = await control.claim("w", [""], 1, 0)
    first = await report_on(control, execution_id, done(lease), want=1)
    before = await store.read(execution_id)
    assert await report_on(control, execution_id, done(lease), want=1) == first
    assert await store.read(execution_id) == before


async def test_two_copies_of_a_report_at_once_are_applied_once(store: Store, control: LocalControlPlane) -> None:
    execution_id = await begin(control, await register(store, chain(2)))
    [lease] = await control.claim("w", [""], 1, 0)
    await asyncio.gather(*(report_on(control, execution_id, done(lease)) for _ in range(3)))
    found = Counter(await types(store, execution_id))
    assert (found["step.done"], found["report.late"]) == (1, 0)


async def test_a_report_on_a_lost_lease_is_late(store: Store, control: LocalControlPlane) -> None:
    execution_id = await begin(control, await register(store, chain(2)))
    [old] = await control.claim("slow", [""], 1, 0)
    assert await control.take_over(execution_id) == 1
    [new] = await control.claim("quick", [""], 1, 1)
    assert (new.work.run_id, new.attempt) == (old.work.run_id, 2)
    await report_on(control, execution_id, done(old, "old"))
    assert Counter(await types(store, execution_id))["report.late"] == 1
    assert Counter(await types(store, execution_id))["step.done"] == 0
    await report_on(control, execution_id, done(new, "new"))
    [event] = [event for event in await store.read(execution_id) if event.event_type == "step.done"]
    assert event.payload["result"] == "new"


async def test_a_waiting_worker_gets_new_work(store: Store, control: LocalControlPlane) -> None:
    playbook = await register(store)
    waiting = asyncio.create_task(control.claim("w", [""], 1, 10))
    other = asyncio.create_task(control.claim("w", ["elsewhere"], 1, 0.05))
    await asyncio.sleep(0)
    execution_id = await begin(control, playbook)
    assert [lease.work.execution_id for lease in await waiting] == [execution_id]
    assert await other == []


async def test_new_work_reaches_those_who_wait_when_a_reporter_takes_older_work(
    store: Store, control: LocalControlPlane
) -> None:
    here = await register(store, chain(2))
    there = await register(store, chain(1).replace("tool:", "spec: {pool: there}\n    tool:"), "tests/there")
    execution_id = await begin(control, here)
    [lease] = await control.claim("both", ["", "there"], 1, 0)
    await begin(control, there)
    waiting = asyncio.create_task(control.claim("here", [""], 1, 0.5))
    await asyncio.sleep(0.01)
    [older] = await report_on(control, execution_id, done(lease), want=1)
    assert older.work.pool == "there"
    assert [lease.work.step for lease in await waiting] == ["s1"]


async def test_a_worker_that_goes_away_keeps_no_work(store: Store, control: LocalControlPlane) -> None:
    playbook, leases = await register(store), list[Lease]()
    for _ in range(20):
        gone = asyncio.create_task(control.claim("gone", [""], 1, 10))
        await asyncio.sleep(0)
        starting = asyncio.create_task(begin(control, playbook))
        await asyncio.sleep(0)
        if not gone.cancel():  # it was served before it went away
            leases += gone.result()
        await starting
    async with asyncio.timeout(10):
        while len(leases) < 20:
            leases += await control.claim("w", [""], 20, 1)
    assert {lease.attempt for lease in leases} == {1}


async def test_what_cannot_be_started_is_refused_and_leaves_nothing(store: Store, control: LocalControlPlane) -> None:
    schema = "executor: {spec: {workload_schema: {required: [n]}}}\n"
    playbook = await register(store, ONE_STEP + schema)
    with pytest.raises(InvalidPayload, match="n"):
        await begin(control, playbook, "1")
    with pytest.raises(InvalidInput, match="content hash nowhere"):
        await begin(control, "nowhere", "1")
    with pytest.raises(InvalidInput, match="no/such/path"):
        await control.submit("1", Start("m", "no/such/path", ""))
    with pytest.raises(UnknownExecution, match="77"):
        await control.submit("77", Signal("s", "go"))
    assert await store.executions(Selection()) == []
    await control.submit("1", Start("m", "tests/test", "", {"n": 1}))
    assert await types(store, "1")


async def test_a_start_sent_again_starts_nothing(store: Store, control: LocalControlPlane) -> None:
    playbook = await register(store)
    await begin(control, playbook, "5")
    before = await types(store, "5")
    await begin(control, playbook, "5")
    assert await types(store, "5") == before


async def test_a_message_that_cannot_be_written_hurts_nobody_else(store: Store, control: LocalControlPlane) -> None:
    one, two = [await begin(control, await register(store, WAITING)) for _ in range(2)]
    messages = [
        (one, Signal("a", "a")),
        (one, Signal("b", "b", object())),
        (one, Signal("c", "c")),
        (two, Signal("d", "d")),
    ]
    done = await asyncio.gather(*(control.submit(*message) for message in messages), return_exceptions=True)
    assert [isinstance(answer, TypeError) for answer in done] == [False, True, False, False]
    names = [event.payload["name"] for event in await store.read(one) if event.event_type == "signal.received"]
    assert names == ["a", "c"]


class Flaky(SqliteStore):
    """Fails now and then, before or after the commit: the caller cannot know which."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(path)
        self._chance = Random(seed)

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        luck = self._chance.random()
        if luck < 0.12:
            raise StoreUnavailable("the disk is away")
        receipt = await super().commit(commits, claims)
        if luck > 0.88:
            raise StoreUnavailable("the disk went away")
        return receipt


@pytest.mark.parametrize("seed", range(3))
async def test_after_errors_of_unknown_outcome_every_message_is_applied_once(tmp_path: Path, seed: int) -> None:
    store = Flaky(tmp_path / "noetl.db", seed)
    async with LocalControlPlane(store, RealClock(), lease_s=0.3) as control:
        execution_id = await begin(control, await register(store, WAITING))
        sent = [Signal(f"m{number}", f"n{number}") for number in range(40)]
        for group in range(0, 40, 4):
            await asyncio.gather(*(control.submit(execution_id, message) for message in sent[group : group + 4]))
        other = await begin(control, await register(store, FAN, "tests/fan"))
        async with workers(control, 2):
            row = await ended(control, store, other)
    names = Counter(
        event.payload["name"] for event in await store.read(execution_id) if event.event_type == "signal.received"
    )
    assert names == {f"n{number}": 1 for number in range(40)}
    assert row["status"] == "completed"
    assert row["steps"]["e"]["done"] == 1
    await store.close()


async def test_a_store_that_stays_away_is_told_to_whoever_asked() -> None:
    class Away(MemoryStore):
        async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
            raise StoreUnavailable("the disk is away")

    class Quick(RealClock):
        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds / 100)

    store = Away()
    async with LocalControlPlane(store, Quick()) as control:
        with pytest.raises(StoreUnavailable, match="the disk is away"):
            await begin(control, await register(store))


async def test_a_lease_that_nobody_was_told_of_comes_back(tmp_path: Path) -> None:
    """The commit is written but its answer lost; the lease lasts ten minutes."""

    class Silent(SqliteStore):
        lost = 0

        async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
            receipt = await super().commit(commits, claims)
            if any(receipt.leases) and not self.lost:
                self.lost += 1
                raise StoreUnavailable("the connection broke before the answer came")
            return receipt

    store = Silent(tmp_path / "noetl.db")
    async with LocalControlPlane(store, RealClock(), lease_s=600.0) as control:
        control.lease_reaper._every_s = 0.01
        await begin(control, await register(store))
        [lease] = await control.claim("w", [""], 1, 30.0)
        assert (store.lost, lease.attempt) == (1, 1)
    await store.close()


async def test_what_could_not_be_given_back_is_given_back_later(tmp_path: Path) -> None:
    class Away(SqliteStore):
        failures = 2

        async def release(self, held: Sequence[tuple[str, int]], now: int) -> None:
            if self.failures:
                self.failures -= 1
                raise StoreUnavailable("the disk is away")
            await super().release(held, now)

    store = Away(tmp_path / "noetl.db")
    async with LocalControlPlane(store, RealClock(), lease_s=600.0) as control:
        control.lease_reaper._every_s = 0.01
        await begin(control, await register(store))
        control.sequencer.outstanding.give_back(await control.claim("w", [""], 1, 30.0))
        [lease] = await control.claim("w", [""], 1, 30.0)
        assert (store.failures, lease.attempt) == (0, 1)
    await store.close()


async def test_several_sequencers_share_a_file(tmp_path: Path) -> None:
    stores = [SqliteStore(tmp_path / "noetl.db") for _ in range(3)]
    playbook = await register(stores[0], WAITING)
    fan = await register(stores[0], FAN, "tests/fan")
    async with (
        LocalControlPlane(stores[0], RealClock()) as one,
        LocalControlPlane(stores[1], RealClock()) as two,
        LocalControlPlane(stores[2], RealClock()) as three,
        workers(two, 2),
        workers(three, 1),
    ):
        execution_id = await begin(one, playbook)
        sent = [Signal(f"m{number}", f"n{number}") for number in range(60)]
        controls = [one, two, three]
        await asyncio.gather(
            *(controls[number % 3].submit(execution_id, message) for number, message in enumerate(sent))
        )
        rows = [await ended(one, stores[0], await begin(one, fan)) for _ in range(3)]
    events = await stores[2].read(execution_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    names = Counter(event.payload["name"] for event in events if event.event_type == "signal.received")
    assert names == {f"n{number}": 1 for number in range(60)}
    assert [row["status"] for row in rows] == ["completed"] * 3
    for store in stores:
        await store.close()


async def test_messages_left_behind_are_taken_up_at_the_next_start(store: Store) -> None:
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, WAITING))
    last = len(await store.read(execution_id))
    await store.commit([Commit(execution_id, last, (), inbox=((execution_id, Cancel("left", "because")),))])
    async with LocalControlPlane(store, RealClock()) as control:
        row = await ended(control, store, execution_id)
    assert row["status"] == "cancelled"
    assert await store.inbox(10) == []


async def test_messages_for_nobody_are_cleared_however_many_there_are(store: Store) -> None:
    left = tuple((f"never-{number}", Pause(f"p{number}")) for number in range(2_500))
    await store.commit([Commit("never", 0, (), inbox=left)])
    async with LocalControlPlane(store, RealClock()), asyncio.timeout(10):
        while await store.inbox(10):
            await asyncio.sleep(0.01)


async def test_an_execution_of_a_newer_version_is_left_alone(store: Store, control: LocalControlPlane) -> None:
    newer = Event("id", "8", 1, "playbook.execution.requested", 1, version=99)
    await store.commit([Commit("8", 0, (newer,))])
    with pytest.raises(Foreign, match="99"):
        await control.submit("8", Signal("s", "go"))
    assert len(await store.read("8")) == 1


async def test_what_is_sent_to_a_foreign_execution_stays_for_a_server_that_knows_it(
    store: Store, control: LocalControlPlane
) -> None:
    newer = Event("id", "8", 1, "playbook.execution.requested", 1, version=99)
    sent = (("8", Signal("own", "go")),)
    await store.commit([Commit("8", 0, (newer,), timers=(("t", 1),), inbox=sent)])
    await control.sequencer.gather()
    other = await begin(control, await register(store, WAITING))
    await control.submit(other, Signal("s", "go"))  # others are served
    assert await control.timers.fire() == 0
    assert await store.inbox(10) == [("8", Signal("own", "go"))]
    assert await store.due(10**15, 10) == [("8", "t", 1)]
    assert len(await store.read("8")) == 1


async def test_a_message_that_cannot_be_decided_wedges_nobody(
    store: Store, control: LocalControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poisoned(plan: Plan, state: Execution, message: AnyMessage, *rest: Any) -> Decision | NeedsLoad:
        if isinstance(message, Signal) and message.name == "poison":
            state.ctx["half"] = "done"
            raise ZeroDivisionError("a mistake in a rule")
        return decide(plan, state, message, *rest)

    monkeypatch.setattr("noetl.server.sequencer.decide.decide", poisoned)
    playbook = await register(store, WAITING)
    one, two = await begin(control, playbook), await begin(control, playbook)
    row = await store.execution(one)
    assert row is not None
    own = Signal("own", "poison")
    await store.commit([Commit(one, row["last_seq"], (), inbox=((one, own),))])
    await control.sequencer.gather()
    for round in range(3):
        names = [(one, "a"), (one, "poison"), (one, "b"), (two, "c")]
        sent = [control.submit(found, Signal(f"{round}-{name}", name)) for found, name in names]
        done = await asyncio.gather(*sent, return_exceptions=True)
        assert [type(answer) for answer in done] == [dict, Undecided, dict, dict]
    assert await store.inbox(10) == [(one, own)]  # it stays to be looked at, or for a server that can decide it
    names_of_one = [event.payload["name"] for event in await store.read(one) if event.event_type == "signal.received"]
    assert names_of_one == ["a", "b"] * 3
    assert "half" not in (await control.sequencer.state(one)).ctx


async def test_a_store_that_is_away_at_the_start_is_waited_for() -> None:
    class Late(MemoryStore):
        failures = 3

        async def _away(self) -> None:
            if self.failures:
                self.failures -= 1
                raise StoreUnavailable("the disk is away")

        async def inbox(self, most: int) -> list[tuple[str, AnyMessage]]:
            await self._away()
            return await super().inbox(most)

        async def version(self) -> int:
            await self._away()
            return await super().version()

    store = Late()
    playbook = await register(store)
    await store.commit([Commit("7", 0, (), inbox=(("7", Start("left", "tests/test", playbook)),))])
    async with LocalControlPlane(store, RealClock(), look_s=0.01) as control, workers(control):
        assert (await ended(control, store, "7"))["status"] == "completed"
    assert store.failures == 0


async def test_too_many_at_once_are_told_to_come_again() -> None:
    class Stuck(MemoryStore):
        open = asyncio.Event()

        async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
            await self.open.wait()
            return await super().commit(commits, claims)

    store = Stuck()
    playbook = await register(store)
    async with LocalControlPlane(store, RealClock(), most_unanswered=2, patience_s=0.01) as control:
        first = [asyncio.create_task(begin(control, playbook)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as refused:
            await begin(control, playbook)
        assert refused.value.retry_after_s > 0
        store.open.set()
        await asyncio.gather(*first)
        await begin(control, playbook)


async def test_a_cold_execution_is_read_from_its_snapshot_on(store: Store) -> None:
    async with LocalControlPlane(store, RealClock(), snapshot_every=20) as control, workers(control):
        execution_id = await begin(control, await register(store, chain(20)))
        await ended(control, store, execution_id)
    seen: list[int] = []

    class Watched:
        async def saved_states(self, execution_ids: Sequence[str], version: int, limit: int) -> list[SavedState]:
            found = await store.saved_states(execution_ids, version, limit)
            seen.extend(event.seq for one in found for event in one.events)
            return found

    watched: Any = Watched()
    state = await StateCache(watched).get(execution_id)
    assert state.status == "completed"
    assert seen[0] > 60


async def test_states_of_messages_that_arrive_together_are_loaded_together(store: Store) -> None:
    playbook = await register(store, WAITING)
    async with LocalControlPlane(store, RealClock()) as control:
        waiting = [await begin(control, playbook) for _ in range(40)]
    asked: list[int] = []
    saved_states = store.saved_states

    async def counted(execution_ids: Sequence[str], version: int, limit: int) -> list[SavedState]:
        asked.append(len(execution_ids))
        return await saved_states(execution_ids, version, limit)

    store.saved_states = counted  # type: ignore[method-assign]
    async with LocalControlPlane(store, RealClock()) as control:
        messages = [(one, Signal(f"s{number}", "go"), None) for number, one in enumerate(waiting)]
        answers = await control.sequencer.submit_all(messages)
    assert {answer.status for answer in answers if isinstance(answer, Answer)} == {"applied"}
    assert sum(asked) == 40
    assert len(asked) <= 3


async def test_whoever_waits_when_the_control_plane_stops_is_told() -> None:
    class Stuck(MemoryStore):
        async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
            if commits:
                await asyncio.Event().wait()
            return await super().commit(commits, claims)

    store = Stuck()
    playbook = await register(store)
    async with LocalControlPlane(store, RealClock()) as control:
        claiming = asyncio.create_task(control.claim("w", ["nothing here"], 1, 60))
        starting = asyncio.create_task(begin(control, playbook))
        await asyncio.sleep(0.02)
    assert await claiming == []
    with pytest.raises(StoreUnavailable, match="send it again"):
        await starting
    with pytest.raises(StoreUnavailable, match="stopped"):
        await control.submit("1", Signal("t", "go"))


async def test_a_claim_in_a_batch_that_is_not_written_is_told_of_the_stop() -> None:
    class Stuck(MemoryStore):
        calls = 0

        async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
            self.calls += 1
            if self.calls > 1:
                await asyncio.Event().wait()
            await asyncio.sleep(0.02)  # until the claim and the second start are there
            return await super().commit(commits, claims)

    store = Stuck()
    playbook = await register(store)
    async with LocalControlPlane(store, RealClock()) as control, asyncio.timeout(10):
        starting = [asyncio.create_task(begin(control, playbook, "7"))]
        while store.calls < 1:
            await asyncio.sleep(0.001)
        starting.append(asyncio.create_task(begin(control, playbook, "8")))
        claiming = asyncio.create_task(control.claim("w", ["nothing here"], 1, 60))
        while store.calls < 2:
            await asyncio.sleep(0.001)
    async with asyncio.timeout(10):
        assert await claiming == []
        assert isinstance((await asyncio.gather(*starting, return_exceptions=True))[-1], StoreUnavailable)


async def test_a_store_that_cannot_be_read_for_a_while_loses_no_message(tmp_path: Path) -> None:
    class Unreadable(SqliteStore):
        failures = 0

        async def saved_states(self, execution_ids: Sequence[str], version: int, limit: int) -> list[SavedState]:
            if self.failures:
                self.failures -= 1
                raise StoreUnavailable("the disk is away")
            return await super().saved_states(execution_ids, version, limit)

    store = Unreadable(tmp_path / "noetl.db")
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, WAITING))
    last = len(await store.read(execution_id))
    await store.commit([Commit(execution_id, last, (), inbox=((execution_id, Cancel("left", "because")),))])
    store.failures = 3
    async with LocalControlPlane(store, RealClock()) as control:
        await control.submit(execution_id, Signal("s", "go"))
        assert (await ended(control, store, execution_id))["status"] == "cancelled"
    assert store.failures == 0
    await store.close()


@pytest.mark.parametrize("busy", [False, True], ids=["alone", "while others keep coming"])
async def test_what_a_commit_of_unknown_outcome_sends_is_not_forgotten(busy: bool) -> None:
    class Torn(MemoryStore):
        torn = 0

        async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
            receipt = await super().commit(commits, claims)
            if not self.torn and any(commit.inbox for commit in commits):
                self.torn += 1
                raise StoreUnavailable("the connection broke before the answer came")
            return receipt

    store = Torn()
    await register(store, chain(1), "tests/child")
    calls = HEAD + "\nworkflow:\n  - {step: call, tool: {kind: playbook, path: tests/child}}\n"
    async with LocalControlPlane(store, RealClock(), look_s=60.0) as control:
        other = await begin(control, await register(store, WAITING))

        async def keep_busy(name: str) -> None:
            for number in count():
                await control.submit(other, Signal(f"{name}{number}", "more"))

        noise = [asyncio.create_task(keep_busy(name)) for name in ("abc" if busy else "")]
        execution_id = await begin(control, await register(store, calls, "tests/parent"))
        [lease] = await control.claim("w", ("",), 1, 5.0)
        pause = Suspension("playbook", {}, child={"path": "tests/child", "payload": {}})
        await report_on(control, execution_id, Report("r", lease.work.run_id, lease.epoch, "w", suspension=pause))
        started = await control.claim("w", ("",), 1, 5.0)
        for task in noise:
            task.cancel()
        await asyncio.gather(*noise, return_exceptions=True)
    assert store.torn == 1
    assert [lease.work.step for lease in started] == ["s0"]
