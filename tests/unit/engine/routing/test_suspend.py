"""Suspensions: timers, signals, children, for step-runs and loop items."""

from __future__ import annotations

from typing import Any

from noetl.engine.routing.suspend import child_execution
from noetl.engine.state.execution import Execution
from noetl.model.ids import EPOCH_MS
from noetl.model.messages import ChildEnded, ItemEnd, Report, Signal, Start, Suspension, TimerDue
from noetl.testing.play import BEGIN
from tests.unit.engine.given import book, done, given

ONE = book("- step: s\n  tool: {kind: noop}\n  next: t\n- step: t\n  tool: {kind: noop}")
LOOP = book("- step: s\n  loop: {in: [x, y], iterator: i, mode: parallel}\n  tool: {kind: noop}")
LATER = BEGIN + 60_000


def rests(run_id: str, cause: str, epoch: int = 1, chunk: str | None = None, **more: Any) -> Report:
    suspension = Suspension(cause, {"at": cause}, **more)
    return Report(f"rest-{run_id}-{more.get('index')}", run_id, epoch, "w1", suspension=suspension, chunk=chunk)


def test_a_sleep_gives_its_lease_back_and_goes_on_as_the_same_run() -> None:
    scene = given(ONE).when(rests("s#1", "sleep", until=LATER))
    scene.then("step.started s", "step.suspended s", "timer.set wake:s#1")
    assert scene.decision.finished == (("9000:s#1", 1),)
    assert scene.decision.timers == (("wake:s#1", LATER),)
    assert scene.state.status == "running"
    scene.when(TimerDue("t", "wake:s#1")).then("timer.fired", "step.scheduled s")
    (work,) = scene.decision.work
    assert (work.run_id, work.number) == ("s#1", 1)
    assert work.resume == {"pipeline": {"at": "sleep"}, "wake": {"by": "timer"}}
    assert scene.decision.cleared == ("wake:s#1",)
    scene.when(done("s#1", epoch=2))
    assert "t#1" in scene.state.runs


def test_a_sleep_until_a_point_of_civil_time_has_a_timer_of_that_name() -> None:
    scene = given(ONE).when(rests("s#1", "sleep", until=LATER, civil=True))
    assert scene.decision.timers == (("until:s#1", LATER),)
    scene.when(TimerDue("t", "until:s#1")).then("timer.fired", "step.scheduled s")
    assert scene.decision.cleared == ("until:s#1",)


def test_a_timer_that_is_gone_changes_nothing() -> None:
    scene = given(ONE, rests("s#1", "sleep", until=LATER), TimerDue("t", "wake:s#1"))
    scene.when(TimerDue("again", "wake:s#1")).then()


def test_a_report_of_a_suspended_run_is_late() -> None:
    scene = given(ONE, rests("s#1", "sleep", until=LATER))
    scene.when(done("s#1")).then("report.late s")


def test_a_signal_wakes_the_wait_and_clears_its_time_out() -> None:
    scene = given(ONE, rests("s#1", "wait", signal="go", until=LATER))
    scene.when(Signal("1", "other")).then("signal.received other")
    scene.when(Signal("2", "go", {"n": 1})).then("signal.received go", "step.scheduled s")
    assert scene.decision.work[0].resume == {
        "pipeline": {"at": "wait"},
        "wake": {"by": "signal", "name": "go", "data": {"n": 1}},
    }
    assert scene.decision.cleared == ("wake:s#1",)
    assert scene.state.ctx["signals"]["go"] == {"n": 1}
    assert scene.state.signals == {"other": [None]}


def test_an_early_signal_is_kept_for_the_wait() -> None:
    scene = given(ONE, Signal("1", "go", 1), Signal("2", "go", 2))
    scene.when(rests("s#1", "wait", signal="go"))
    scene.then("step.started s", "step.suspended s", "step.scheduled s")
    assert scene.decision.work[0].resume is not None
    assert scene.decision.work[0].resume["wake"]["data"] == 1
    assert scene.state.signals == {"go": [2]}


CHILD = {"path": "other/child", "payload": {"n": 1}, "return_step": "last"}


def test_a_child_is_started_by_a_message_and_its_end_wakes_the_run() -> None:
    scene = given(ONE).when(rests("s#1", "playbook", child=CHILD))
    scene.then("step.started s", "step.suspended s", "child.started")
    ((child_id, start),) = scene.decision.inbox
    assert isinstance(start, Start)
    assert (start.path, start.payload) == ("other/child", {"n": 1})
    assert start.parent == {"execution_id": "9000", "run_id": "s#1", "return_step": "last"}
    scene.when(ChildEnded("c", "s#1", child_id, "completed", 42)).then("child.finished", "step.scheduled s")
    assert scene.decision.work[0].resume is not None
    assert scene.decision.work[0].resume["wake"]["result"] == 42
    scene.when(ChildEnded("c2", "s#1", child_id, "completed", 43)).then()


def test_the_ids_of_children_are_a_millisecond_apart_and_those_of_other_parents_elsewhere() -> None:
    state, other = Execution("9000"), Execution("9001")
    first = child_execution(state, BEGIN)
    state.numbers["child"] = 1
    second = child_execution(state, BEGIN)
    assert [int(one) >> 22 for one in (first, second)] == [BEGIN + 1 - EPOCH_MS, BEGIN + 2 - EPOCH_MS]
    assert child_execution(other, BEGIN) != first
    assert int(child_execution(other, BEGIN)) >> 22 == int(first) >> 22


def test_an_item_suspends_alone_and_keeps_its_place() -> None:
    scene = given(LOOP).when(rests("s#1", "sleep", chunk="c1", index=0, until=LATER))
    assert scene.decision.finished == (("9000:s#1:c1", 1),)
    scene.when(Report("i1", "s#1", 1, "w1", items=_ended(1), chunk="c2"))
    assert scene.state.status == "running"
    scene.when(TimerDue("t", "wake:s#1:0"))
    (work,) = scene.decision.work
    assert work.chunk is not None
    assert (work.chunk.start, work.chunk.items) == (0, ("x",))
    assert work.resume == {"pipeline": {"at": "sleep"}, "wake": {"by": "timer"}}
    scene.when(Report("i0", "s#1", 1, "w1", items=_ended(0), chunk="c3"))
    assert scene.state.ended["s"].result["results"] == [0, 1]


def test_an_item_that_suspends_in_a_sequential_loop_holds_the_rest_back() -> None:
    scene = given(LOOP.replace("parallel", "sequential")).when(rests("s#1", "wait", chunk="c1", index=0, signal="go"))
    assert not scene.decision.work
    scene.when(Signal("1", "go"))
    assert [work.chunk.items for work in scene.decision.work if work.chunk] == [("x",)]
    scene.when(Report("i0", "s#1", 1, "w1", items=_ended(0), chunk="c2"))
    assert [work.chunk.items for work in scene.decision.work if work.chunk] == [("y",)]


def _ended(index: int) -> Any:
    return (ItemEnd(index, "ok", index),)
