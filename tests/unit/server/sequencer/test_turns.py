"""Turns of the sequencer: immediate without awaits, batched, and fair."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import checksum
from noetl.model.errors import StoreUnavailable
from noetl.model.messages import Signal
from noetl.model.work import Lease
from noetl.ports import Claim, Commit, Receipt
from noetl.ports.work import Answer
from noetl.server.control_plane import LocalControlPlane
from noetl.stores.memory.store import MemoryStore
from tests.unit.server.system import HEAD, RealClock, begin, chain, done, ended, register, report_on, workers

pytestmark = pytest.mark.asyncio
PAIR = (
    HEAD
    + "workflow:\n- {step: a, tool: {kind: noop}, next: [b, c]}\n"
    + "".join(f"- {{step: {name}, tool: {{kind: noop}}}}\n" for name in "bc")
)


class Noting(MemoryStore):
    """Store that notes batch sizes; may be slow, or fail around the next commit."""

    def __init__(self, *, waits: bool = False) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.trouble = ""
        self._waits = waits

    def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt | Awaitable[Receipt]:
        if commits:
            self.batches.append(len(commits))
        return self._later(commits, claims) if self._waits else self._now(commits, claims)

    async def _later(self, commits: Sequence[Commit], claims: Sequence[Claim]) -> Receipt:
        await asyncio.sleep(0)
        return self._now(commits, claims)

    def _now(self, commits: Sequence[Commit], claims: Sequence[Claim]) -> Receipt:
        trouble, self.trouble = (self.trouble, "") if commits else ("", self.trouble)
        if trouble == "before":
            raise StoreUnavailable("the disk is away")
        receipt = super().commit(commits, claims)
        assert isinstance(receipt, Receipt)
        if trouble == "after":
            raise StoreUnavailable("the disk went away")
        return receipt


async def idle(control: LocalControlPlane) -> None:
    async with asyncio.timeout(15):
        while not control.sequencer.is_idle:
            await asyncio.sleep(0)


def keep_in(answers: list[Answer | Exception]) -> Callable[[Answer | Exception], bool]:
    """Return a reply callback that takes every answer."""

    def reply(answer: Answer | Exception) -> bool:
        answers.append(answer)
        return True

    return reply


async def test_a_report_is_answered_in_the_call_that_offers_it() -> None:
    store, answers = Noting(), list[Answer | Exception]()
    async with LocalControlPlane(store, RealClock(), look_s=60) as control:
        execution_id = await begin(control, await register(store, chain(2)))
        [lease] = await control.claim("w", [""], 1, 0)
        await idle(control)
        control.report(execution_id, done(lease), 1, keep_in(answers))
        [answer] = answers
        assert isinstance(answer, Answer)
        assert [found.work.step for found in answer.leases] == ["s1"]


@pytest.mark.parametrize("waits", [False, True])
async def test_messages_that_come_during_a_turn_share_the_next(waits: bool) -> None:
    store = Noting(waits=waits)
    async with LocalControlPlane(store, RealClock(), look_s=60) as control:
        execution_id = await begin(control, await register(store, PAIR))
        await idle(control)
        store.batches.clear()
        sent = [control.submit(execution_id, Signal(f"s{number}", "go")) for number in range(20)]
        await asyncio.gather(*sent)
        assert store.batches == [1, 19]


@pytest.mark.parametrize("waits", [False, True])
async def test_turns_in_a_row_let_others_run_and_leave_what_the_log_says(waits: bool) -> None:
    store, passes = Noting(waits=waits), 0

    async def others() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async with LocalControlPlane(store, RealClock(), snapshot_every=1_000) as control:
        execution_id = await begin(control, await register(store, chain(40)))
        [lease] = await control.claim("w", [""], 1, 0)
        beside = asyncio.create_task(others())
        for number in range(1, 40):
            [lease] = await report_on(control, execution_id, done(lease), want=1)
            assert lease.work.step == f"s{number}"
        beside.cancel()
        assert passes >= 30
        live = checksum(await control.sequencer.state(execution_id))
    assert live == checksum(fold(execution_id, await store.read(execution_id)))


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("trouble", ["before", "after"])
async def test_a_report_of_unknown_outcome_is_applied_once(trouble: str, waits: bool) -> None:
    store = Noting(waits=waits)
    async with LocalControlPlane(
        store, RealClock()
    ) as control:  # no lease runs out here: what was not delivered goes back
        execution_id = await begin(control, await register(store, chain(4)))
        [lease] = await control.claim("w", [""], 1, 0)
        store.trouble = trouble
        control.sequencer.outstanding.give_back(await report_on(control, execution_id, done(lease), want=1))
        async with workers(control, 1):
            row = await ended(control, store, execution_id)
    assert row["status"] == "completed"
    ids = [event.event_id for event in await store.read(execution_id)]
    assert len(ids) == len(set(ids))


async def test_a_waiting_subscription_is_served_with_a_report_that_wants_nothing() -> None:
    store, delivered = Noting(), list[Lease]()
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, chain(2)))
        [lease] = await control.claim("w", [""], 1, 0)
        control.subscribe("other", ("",), 1, delivered.extend, lambda _: None)
        await idle(control)
        store.batches.clear()
        assert await report_on(control, execution_id, done(lease)) == []
        assert [(found.work.step, found.worker) for found in delivered] == [("s1", "other")]
        assert store.batches == [1]


async def test_new_work_is_delivered_in_the_commit_that_creates_it_and_in_turn() -> None:
    store, delivered = Noting(), list[str]()
    async with LocalControlPlane(store, RealClock()) as control:
        playbook = await register(store)
        control.subscribe("a", ("",), 9, lambda found: delivered.extend("a" for _ in found), lambda _: None)
        control.subscribe("b", ("",), 9, lambda found: delivered.extend("b" for _ in found), lambda _: None)
        await idle(control)
        for count in range(1, 5):
            await begin(control, playbook)
            assert len(delivered) == count
        assert delivered == ["a", "b", "a", "b"]


async def test_work_for_a_reply_that_is_not_taken_goes_back() -> None:
    store = Noting()
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, chain(2)))
        [lease] = await control.claim("w", [""], 1, 0)
        control.report(execution_id, done(lease), 1, lambda _: False)
        [again] = await control.claim("other", [""], 1, 10)
        assert (again.work.step, again.attempt) == ("s1", 1)


async def test_a_reply_that_raises_keeps_nothing_back(caplog: pytest.LogCaptureFixture) -> None:
    store = Noting()
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, PAIR))
        [first] = await control.claim("w", [""], 1, 0)
        await report_on(control, execution_id, done(first))
        one, two = await control.claim("w", [""], 2, 0)
        control.report(execution_id, done(one), 0, lambda _: bool(1 / 0))
        assert await report_on(control, execution_id, done(two)) == []
        assert control.sequencer.unanswered == 0
    assert "ZeroDivisionError" in caplog.text


async def test_reports_that_wait_when_the_control_plane_stops_are_answered() -> None:
    store, answers = Noting(waits=True), list[Answer | Exception]()
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, PAIR))
        [first] = await control.claim("w", [""], 1, 0)
        await report_on(control, execution_id, done(first))
        for lease in await control.claim("w", [""], 2, 0):
            control.report(execution_id, done(lease), 1, keep_in(answers))
        assert control.sequencer.unanswered == 2
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
    control.report(execution_id, done(first), 1, keep_in(answers))
    assert len(answers) == 3


async def test_a_queue_that_is_known_to_be_empty_is_not_asked_with_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    store, claims = Noting(), list[Claim]()
    commit = store.commit

    def noting(commits: Sequence[Commit], asked: Sequence[Claim] = ()) -> Receipt | Awaitable[Receipt]:
        claims.extend(asked)
        return commit(commits, asked)

    monkeypatch.setattr(store, "commit", noting)
    delivered = list[Lease]()
    async with LocalControlPlane(store, RealClock(), look_s=60) as control:
        control.subscribe("w", ("",), 5, delivered.extend, lambda _: None)
        execution_id = await begin(control, await register(store, chain(1)))
        [lease] = delivered
        claims.clear()
        assert await report_on(control, execution_id, done(lease), want=1) == []
        assert claims == []


async def test_a_crash_of_a_turn_ends_the_control_plane_and_not_the_caller(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Noting()
    async with LocalControlPlane(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, PAIR))
        whole = [control.is_whole]

        def broken(*_: object) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(control.sequencer, "_publish", broken)
        with pytest.raises(StoreUnavailable, match="send it again"):
            await control.submit(execution_id, Signal("s", "go"))
        await asyncio.sleep(0.01)
        whole.append(control.is_whole)
    assert whole == [True, False]
    assert "a bug" in caplog.text
