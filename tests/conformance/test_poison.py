"""Undecidable messages become dead letters and do not block other messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from noetl.engine.handlers.decide import decide
from noetl.engine.queries.explain import choices, standings
from noetl.engine.state.evolve import fold
from noetl.model.errors import InvalidInput, Undecided
from noetl.model.letters import NO_LETTERS, DeadLetter
from noetl.model.messages import AnyMessage, Signal, Start, Suspension, TimerDue
from noetl.model.messages import Report as Reported
from noetl.ports import Commit
from noetl.ports.letters import LetterSelection
from noetl.server.background.rebuild import Rebuild
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.control_plane import LocalControlPlane
from noetl.server.operations.dead_letters import discard, ready, replay
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import HEAD, RealClock, begin, done, ended, register, report_on, workers

pytestmark = pytest.mark.asyncio
TWO = HEAD + "workflow:\n  - {step: one, tool: {kind: noop}, next: two}\n  - {step: two, tool: {kind: noop}}\n"
WAIT = HEAD + "workflow:\n  - {step: one, tool: {kind: wait, signal: go}}\n"


class Mistake:
    """A bug in the rules that some messages hit until the test fixes it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.meets: Any = lambda message: False
        patch.setattr("noetl.server.sequencer.decide.decide", self._decide)

    def _decide(self, plan: Any, state: Any, message: AnyMessage, *rest: Any) -> Any:
        if self.meets(message):
            state.ctx["half"] = "done"
            raise ZeroDivisionError("a mistake in a rule")
        return decide(plan, state, message, *rest)


@pytest.fixture
def mistake(monkeypatch: pytest.MonkeyPatch) -> Mistake:
    return Mistake(monkeypatch)


@asynccontextmanager
async def served(store: Store) -> AsyncIterator[LocalControlPlane]:
    async with LocalControlPlane(store, RealClock(), look_s=0.01) as control:
        yield control


async def letters(store: Store, count: int = 1) -> list[DeadLetter]:
    """Wait for `count` dead letters and return them."""
    while len(found := await store.letters(LetterSelection())) < count:
        await asyncio.sleep(0.01)
    return found


async def settled(store: Store, name: str, status: str) -> DeadLetter:
    while (found := await store.letter(name)) is None or found.status != status:
        await asyncio.sleep(0.01)
    return found


async def send(store: Store, execution_id: str, message: AnyMessage) -> None:
    """Put a message of the system in the store, as a commit does."""
    row = await store.execution(execution_id)
    await store.commit([Commit(execution_id, row["last_seq"] if row else 0, (), inbox=((execution_id, message),))])


async def agrees(place: Place, store: Store) -> None:
    rebuild = Rebuild(store, place.derived(store), PlanCache(store))
    assert [found for found in await rebuild.check() if "letter" in found or "last" in found] == []


async def again(store: Store, control: LocalControlPlane, letter: DeadLetter, name: str) -> None:
    await replay(control, await ready(store, control, [letter], {}, {}), {}, by="ada", name=name)


async def test_a_message_that_cannot_be_decided_is_a_dead_letter_and_others_go_on(
    store: Store, place: Place, mistake: Mistake
) -> None:
    mistake.meets = lambda message: isinstance(message, Signal) and message.message_id == "bad"
    playbook = await register(store, WAIT)
    async with served(store) as control:
        one, two = await begin(control, playbook), await begin(control, playbook)
        [lease, other] = await control.claim("w", ("",), 2, 5)
        for held in (lease, other):
            waits = Suspension("wait", {"at": 0}, signal="go")
            name = f"{held.work.work_id}:s"
            await report_on(control, held.work.execution_id, Reported(name, held.work.run_id, held.epoch, "w", suspension=waits))  # fmt: skip
        await send(store, one, Signal("bad", "go", {"password": "hunter22", "n": 1}))
        await control.sequencer.gather()
        [letter] = await letters(store)
        assert (letter.reason, letter.status, letter.execution_id, letter.attempts) == (
            "poison_message",
            "pending",
            one,
            1,
        )
        assert letter.last_error == "a Signal cannot be decided: ZeroDivisionError: a mistake in a rule"
        assert letter.payload == {
            "type": "Signal", "message_id": "bad", "name": "go", "data": {"password": "(masked secret)", "n": 1},
        }  # fmt: skip
        assert "in _decide" in letter.last_stack
        assert "step.suspended" in letter.context_excerpt
        events = await store.read(one)
        state = fold(one, events)
        plan = await control.plan(playbook)
        assert "half" not in state.ctx
        told = [found for found in standings(plan, state, events) if found.what == "message"]
        assert f"noetl dlq replay {letter.message_id}" in told[0].moved_by
        assert "ZeroDivisionError" in told[0].waits_for
        assert any("could not decide" in choice.decided for choice in choices(events))
        await control.submit(two, Signal("good", "go"))
        assert [name for name, _ in await store.inbox(10)] == [one]
        await agrees(place, store)

        await again(store, control, letter, "first")  # the mistake is still there
        returned = await settled(store, letter.message_id, "pending")
        assert (returned.attempts, returned.replays, returned.first_seen) == (2, 1, letter.first_seen)
        mistake.meets = lambda message: False
        await again(store, control, returned, "second")
        assert (await settled(store, letter.message_id, "replayed")).replays == 1
        async with workers(control):
            for name in (one, two):
                assert (await ended(control, store, name))["status"] == "completed"
        assert await store.inbox(10) == []
        assert standings(plan, fold(one, await store.read(one)), await store.read(one)) == ()
        await agrees(place, store)


async def test_a_report_that_cannot_be_decided_is_kept_and_told(store: Store, mistake: Mistake) -> None:
    async with served(store) as control:
        one = await begin(control, await register(store, TWO))
        [lease] = await control.claim("w", ("",), 1, 5)
        mistake.meets = lambda message: isinstance(message, Reported)
        for _ in range(3):  # a worker that insists makes no more letters
            with pytest.raises(Undecided, match="noetl dlq show"):
                await report_on(control, one, done(lease), 1)
        [letter] = await letters(store)
        assert (letter.step_id, letter.payload["type"], letter.attempts) == ("one", "Report", 1)
        mistake.meets = lambda message: False
        await again(store, control, letter, "r")
        await settled(store, letter.message_id, "replayed")
        async with workers(control):
            assert (await ended(control, store, one))["status"] == "completed"
        kinds = [event.event_type for event in await store.read(one)]
        assert kinds.count("step.done") == 2
        assert kinds.index("message.poisoned") < kinds.index("message.released") < kinds.index("message.settled")


async def test_a_message_that_cannot_be_written_is_a_letter_without_it(store: Store, mistake: Mistake) -> None:
    async with served(store) as control:
        one = await begin(control, await register(store, WAIT))
        mistake.meets = lambda message: message.message_id == "bad"
        with pytest.raises(Undecided):
            await control.submit(one, Signal("bad", "go", "half a character: \ud800"))
        [letter] = await letters(store)
        assert "half a character" in letter.payload["text"]
        with pytest.raises(InvalidInput, match="can only be discarded"):
            await ready(store, control, [letter], {}, {})
        await control.submit(one, Signal("good", "elsewhere"))


async def test_where_no_letters_are_kept_it_is_set_aside(store: Store, mistake: Mistake) -> None:
    mistake.meets = lambda message: message.message_id == "bad"
    async with LocalControlPlane(store, RealClock(), look_s=0.01, defaults={NO_LETTERS: True}) as control:
        one = await begin(control, await register(store, WAIT))
        with pytest.raises(ZeroDivisionError):
            await control.submit(one, Signal("bad", "go"))
        assert "message.poisoned" not in [event.event_type for event in await store.read(one)]
        assert await store.letters(LetterSelection()) == []


async def test_a_server_that_can_decide_it_closes_the_letter(store: Store, mistake: Mistake) -> None:
    mistake.meets = lambda message: message.message_id == "bad"
    async with served(store) as control:
        one = await begin(control, await register(store, WAIT))
        await send(store, one, Signal("bad", "go"))
        await control.sequencer.gather()
        [letter] = await letters(store)
    async with served(store):  # another one that cannot
        await asyncio.sleep(0)
        assert [found.attempts for found in await letters(store)] == [1]
    mistake.meets = lambda message: False
    async with served(store) as control:
        closed = await settled(store, letter.message_id, "replayed")
        assert (closed.replays, await store.inbox(10)) == (0, [])


async def test_a_timer_that_cannot_be_decided_is_one_letter_and_fires_later(store: Store, mistake: Mistake) -> None:
    mistake.meets = lambda message: isinstance(message, TimerDue)
    slow = HEAD + "executor: {spec: {timeout_s: 0.05}}\nworkflow:\n  - {step: one, tool: {kind: noop}}\n"
    async with served(store) as control:
        one = await begin(control, await register(store, slow))
        [letter] = await letters(store)
        for _ in range(3):
            await control.timers.fire()
        assert [found.attempts for found in await letters(store)] == [1]
        mistake.meets = lambda message: False
        await again(store, control, letter, "r")
        assert (await ended(control, store, one))["status"] == "failed"
        await settled(store, letter.message_id, "replayed")
        assert await store.inbox(10) == []


async def test_what_was_discarded_is_never_decided(store: Store, place: Place, mistake: Mistake) -> None:
    mistake.meets = lambda message: message.message_id == "bad"
    async with served(store) as control:
        one = await begin(control, await register(store, WAIT))
        await send(store, one, Signal("bad", "go"))
        await control.sequencer.gather()
        [letter] = await letters(store)
        await discard(control, [letter], "the sender was wrong", by="ada", name="d")
        assert (await settled(store, letter.message_id, "discarded")).note == "the sender was wrong"
    mistake.meets = lambda message: False
    async with served(store) as control:
        await control.submit(one, Signal("other", "elsewhere"))
        names = [event.payload.get("name") for event in await store.read(one) if event.event_type == "signal.received"]
        assert names == ["elsewhere"]
        await agrees(place, store)


async def test_a_child_that_cannot_be_started_fails_in_its_parent(store: Store, mistake: Mistake) -> None:
    mistake.meets = lambda message: isinstance(message, Start) and message.parent is not None
    await register(store, TWO.replace("tests/test", "tests/child"), "tests/child")
    book = HEAD + "workflow:\n  - {step: one, tool: {kind: playbook, path: tests/child}}\n"
    async with served(store) as control:
        one = await begin(control, await register(store, book))
        [lease] = await control.claim("w", ("",), 1, 5)
        waits = Suspension("playbook", {"at": 0}, child={"path": "tests/child", "payload": {}})
        await report_on(control, one, Reported("s", lease.work.run_id, lease.epoch, "w", suspension=waits))
        [again] = await control.claim("w", ("",), 1, 5)  # with what became of the child
        assert again.work.resume is not None
        assert "POISON_MESSAGE" in str(again.work.resume)
        assert await store.inbox(10) == []
