"""Laws on random nets: tokens, runs, forks and logs always add up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution, StepRun, Token, checksum, dump, load
from noetl.model.messages import (
    Cancel,
    Ending,
    ItemEnd,
    LeaseLost,
    PatchCtx,
    Pause,
    Report,
    Signal,
    Suspension,
    TimerDue,
    Unpause,
)
from noetl.testing.play import Script
from tests.unit.engine.given import book

MOST_RUNS = 25
JOINS = ["all", "all", "all", "any", "each", 2]
CONDITION = "{{ not ctx.stop and (s%d.n or 0) %% 3 != %d }}"


@st.composite
def nets(draw: st.DrawFn) -> str:
    """Playbooks with every feature of the net; `ctx.stop` ends every branch."""
    count = draw(st.integers(2, 6))
    lines = []
    for number in range(count):
        join = draw(st.sampled_from(JOINS)) if number else "all"
        gate = draw(st.integers(0, 5)) == 0
        admit = ", policy: {admit: {rules: [{when: '{{ ctx.open }}', then: {allow: true}}]}}" if gate else ""
        lines.append(f"- step: s{number}\n  spec: {{join: {join}{admit}}}\n  tool: {{kind: noop}}")
        if draw(st.integers(0, 5)) == 0:
            mode = draw(st.sampled_from(["parallel", "sequential"]))
            lines.append(f"  loop: {{in: [1, 2, 3], iterator: i, spec: {{mode: {mode}, max_in_flight: 2}}}}")
        targets = draw(st.lists(st.integers(0, count - 1), max_size=3, unique=True))
        if targets:
            mode = draw(st.sampled_from(["exclusive", "inclusive", "inclusive"]))
            lines.append(f"  next:\n    spec: {{mode: {mode}}}\n    arcs:")
            for target in targets:
                when = CONDITION % (number, draw(st.integers(0, 5)))
                lines.append(f"      - {{step: s{target}, when: '{when}'}}")
    parked = draw(st.sampled_from(["wait", "finish", "fail"]))
    fails = draw(st.sampled_from(["halt", "continue"]))
    final = ", final_step: s1" if draw(st.integers(0, 4)) == 0 else ""
    return book("\n".join(lines), f"executor: {{spec: {{on_parked: {parked}, on_step_fail: {fails}{final}}}}}")


def holds(script: Script) -> None:
    """Check everything that must be true between any two messages."""
    state = script.state
    created, consumed = Counter[str](), Counter[str]()
    for event in script.events:
        if event.event_type == "token.created":
            created[event.entity_id] += 1
        elif event.event_type == "token.absorbed":
            consumed[event.entity_id] += 1
        elif event.event_type == "step.scheduled":
            consumed.update(event.payload.get("tokens", ()))
    assert all(number == 1 for number in created.values())
    assert created == consumed + Counter(state.tokens.keys())
    ends = Counter(
        str(event.step_run_id) for event in script.events if event.event_type in ("step.done", "step.failed")
    )
    assert all(number == 1 for number in ends.values())
    scheduled = {str(event.step_run_id) for event in script.events if event.event_type == "step.scheduled"}
    assert scheduled == set(ends) | set(state.runs)
    assert [event.seq for event in script.events] == list(range(1, len(script.events) + 1))
    assert len({event.event_id for event in script.events}) == len(script.events)
    carriers_add_up(state)
    ending_adds_up(state)
    work_adds_up(script)


def carriers_add_up(state: Execution) -> None:
    holders: dict[str, Token | StepRun] = {**state.tokens, **state.runs}
    for name, holder in holders.items():
        for fork_id, branches in holder.lineage.items():
            assert name in state.forks[fork_id].carriers
            assert branches
    for fork in state.forks.values():
        assert all(fork.fork_id in holders[carrier].lineage for carrier in fork.carriers)


def ending_adds_up(state: Execution) -> None:
    if state.phase == "ended":
        assert not state.tokens
        assert not state.runs
        assert not state.timers
        assert state.status in ("completed", "failed", "cancelled", "partial")
        return
    assert state.tokens or state.runs or (state.paused and state.phase == "closing")
    if not state.paused and state.phase == "running":
        stalled = not state.runs
        assert (state.status == "waiting") == stalled
        assert not stalled or any(token.parked for token in state.tokens.values())


def work_adds_up(script: Script) -> None:
    expected = set()
    for run in script.state.runs.values():
        key = f"{script.state.execution_id}:{run.run_id}"
        if run.loop is not None:
            expected |= {f"{key}:{chunk}" for chunk in run.loop.pieces}
            assert sum(piece.width for piece in run.loop.pieces.values()) + len(run.loop.suspended) <= run.loop.width
        elif run.phase != "suspended":
            expected.add(key)
    assert set(script.work) == expected


def act(script: Script, data: st.DataObject) -> None:
    """Perform one random action."""
    choice = data.draw(st.integers(0, 19))
    others: list[Any] = [
        lambda: script.tell(Signal(script.message_id(), "go", choice)),
        lambda: script.tell(PatchCtx(script.message_id(), {"open": bool(data.draw(st.booleans()))})),
        lambda: script.tell(Pause(script.message_id())),
        lambda: script.tell(Unpause(script.message_id())),
        lambda: lose(script, data),
    ]
    if choice < len(others):
        others[choice]()
    elif script.timers and choice < 8:
        timer = data.draw(st.sampled_from(sorted(script.timers)))
        script.tell(TimerDue(script.message_id(), timer))
        script.timers.pop(timer, None)
    elif script.work:
        answer(script, data, data.draw(st.sampled_from(sorted(script.work))))
    else:
        script.tell(Unpause(script.message_id()))


def lose(script: Script, data: st.DataObject) -> None:
    if script.work:
        key = data.draw(st.sampled_from(sorted(script.work)))
        item = script.work[key]
        chunk = item.chunk.chunk_id if item.chunk else None
        spent = data.draw(st.integers(0, 9)) == 0
        script.tell(LeaseLost(script.message_id(), item.run_id, script.epochs[key], chunk, spent))


def answer(script: Script, data: st.DataObject, key: str) -> None:
    item, epoch = script.work[key], script.epochs[key]
    if sum(sum(found.values()) for found in script.state.counts.values()) > MOST_RUNS:
        script.tell(PatchCtx(script.message_id(), {"stop": True}))
        if key not in script.work:
            return
    result = {"n": data.draw(st.integers(0, 5))}
    kind = data.draw(st.integers(0, 9))
    error = {"kind": "timeout", "message": "no"} if kind == 0 else None
    rest = [
        Suspension("sleep", {}, until=script.now + 5),
        Suspension("wait", {}, signal="go", until=script.now + 9),
    ][kind % 2]
    if item.chunk is not None:
        left = [
            item.chunk.start + n for n in range(len(item.chunk.items)) if item.chunk.start + n not in item.chunk.ended
        ]
        index = left[0] if item.chunk.width == 1 else data.draw(st.sampled_from(left))
        if kind == 1:
            message = Report(
                script.message_id(), item.run_id, epoch, chunk=item.chunk.chunk_id, suspension=_at(rest, index)
            )
        else:
            ended = ItemEnd(index, "error" if error else "ok", result, error)
            message = Report(script.message_id(), item.run_id, epoch, items=(ended,), chunk=item.chunk.chunk_id)
    elif kind == 1:
        message = Report(script.message_id(), item.run_id, epoch, suspension=rest)
    else:
        ending = Ending("error", None, error) if error else Ending("ok", result)
        message = Report(script.message_id(), item.run_id, epoch, ending=ending, writes={"w": kind})
    script.tell(message)
    if kind == 2:  # the answer was lost, and the worker says it again
        script.tell(Report(script.message_id(), item.run_id, epoch, ending=Ending("ok", result)))


def _at(rest: Suspension, index: int) -> Suspension:
    return Suspension(rest.cause, rest.pipeline, rest.until, rest.signal, index=index)


def explore(text: str, data: st.DataObject, steps: int) -> Script:
    script = Script(text)
    script.start()
    for _ in range(data.draw(st.integers(1, steps))):
        if script.state.phase == "ended":
            break
        before = checksum(script.state)
        assert checksum(load(dump(script.state))) == before
        act(script, data)
        holds(script)
    script.check()
    return script


@given(nets(), st.data())
@settings(max_examples=40)
def test_everything_adds_up_after_every_message(text: str, data: st.DataObject) -> None:
    explore(text, data, 40)


@given(nets(), st.data())
@settings(max_examples=40)
def test_every_execution_can_come_to_an_end(text: str, data: st.DataObject) -> None:
    script = explore(text, data, 15)
    script.tell(PatchCtx(script.message_id(), {"stop": True}))
    script.tell(Unpause(script.message_id()))
    script.held.clear()
    script.run()
    if script.status == "waiting":
        script.tell(PatchCtx(script.message_id(), {"open": True}))
        script.run()
    assert script.state.phase == "ended"
    holds(script)


@given(nets(), st.data())
@settings(max_examples=40)
def test_a_cancel_always_ends_at_once(text: str, data: st.DataObject) -> None:
    script = explore(text, data, 20)
    if script.state.phase != "ended":
        script.tell(Cancel(script.message_id(), "enough"))
        assert script.status == "cancelled"
        assert not script.work
        assert not script.timers
    holds(script)


@given(nets(), st.data())
@settings(max_examples=40)
def test_a_state_that_was_cut_anywhere_goes_on_the_same(text: str, data: st.DataObject) -> None:
    script = explore(text, data, 20)
    cut = data.draw(st.integers(0, len(script.events)))
    head = fold(script.state.execution_id, script.events[:cut])
    assert checksum(fold(script.state.execution_id, script.events[cut:], load(dump(head)))) == checksum(script.state)


@pytest.mark.chaos
@given(nets(), st.data())
def test_everything_adds_up_for_long(text: str, data: st.DataObject) -> None:
    explore(text, data, 200)
