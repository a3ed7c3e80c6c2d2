"""Suspensions: timers, signals, children, for step-runs and loop items."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.pipeline.pipeline import start
from noetl.engine.queries.execution_fork import fork, shared
from noetl.engine.routing.suspend import child_execution
from noetl.engine.state.execution import Execution
from noetl.engine.tasks.actions import Suspend
from noetl.engine.tasks.run_info import Scopes, for_step, info_for
from noetl.engine.tasks.task_plan import Layered
from noetl.model.errors import InvalidInput
from noetl.model.ids import EPOCH_MS
from noetl.model.messages import ChildEnded, ItemEnd, Pause, Report, Signal, Start, Suspension, TimerDue, Unpause
from noetl.testing.play import BEGIN, read
from noetl.wiring.embedded import language_kinds
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


# What is woken and has nothing left for a worker


def waits(text: str, index: int | None = None, chunk: str | None = None) -> Report:
    """Return the report of a worker that has begun the step `s` until it waits."""
    playbook = read(text)
    step = next(one for one in playbook.workflow if one.name == "s")
    info = for_step(info_for(playbook, language_kinds()), step, Layered({}))
    pipeline = start(step.tasks, Scopes(iter={"i": "x"}), info)
    action = pipeline.advance(BEGIN)
    assert isinstance(action, Suspend)
    kept = Suspension(action.cause, pipeline.snapshot(), action.until, action.signal, action.child, index)
    return Report(f"waits-{index}", "s#1", 1, "w1", pipeline.records(), suspension=kept, chunk=chunk)


SLEEP = book("- {step: s, tool: {kind: sleep, seconds: 60}, next: t}\n- {step: t, tool: {kind: noop}}")
WAIT = SLEEP.replace("kind: sleep, seconds: 60", "kind: wait, signal: go, timeout_s: 60")


def test_a_sleep_with_nothing_behind_it_ends_without_a_worker() -> None:
    scene = given(SLEEP, waits(SLEEP)).when(TimerDue("t", "wake:s#1"))
    ends = ("step.woken s", "task.done s_task", "step.done s", "next.evaluated", "token.created", "step.scheduled t")
    scene.then("timer.fired", *ends)
    assert [work.run_id for work in scene.decision.work] == ["t#1"]
    assert scene.decision.cleared == ("wake:s#1",)
    assert set(scene.state.ended["s"].result) == {"started_at", "woke_at"}


def test_a_signal_ends_a_wait_with_its_data_and_clears_the_time_out() -> None:
    scene = given(WAIT, waits(WAIT)).when(Signal("1", "go", {"n": 1}))
    assert scene.last("step.woken").payload == {"timer": "wake:s#1", "signal": "go"}
    assert scene.state.ended["s"].result == {"n": 1}
    assert scene.decision.cleared == ("wake:s#1",)
    assert not scene.state.signals


def test_an_early_signal_ends_a_wait_with_the_report_that_suspends_it() -> None:
    scene = given(WAIT, Signal("1", "go", 7)).when(waits(WAIT))
    assert scene.state.ended["s"].result == 7
    assert scene.decision.finished == (("9000:s#1", 1),)
    assert [work.run_id for work in scene.decision.work] == ["t#1"]


def test_earlier_results_and_writes_of_the_pipeline_are_those_of_the_worker() -> None:
    tasks = "[{name: a, kind: noop, result: 5}, {name: b, kind: wait, signal: go}]"
    text = SLEEP.replace("{kind: sleep, seconds: 60}", tasks)
    report = waits(text.replace("{name: a, kind: noop, result: 5}, ", ""))
    assert report.suspension is not None
    held = {
        **report.suspension.pipeline,
        "counter": 1,
        "results": {"a": {"value": 5}},
        "prev": {"label": "a"},
        "writes": {"seen": True},
        "step": {"mine": 1},
    }
    scene = given(text, Report("r", "s#1", 1, "w1", suspension=Suspension("wait", held, signal="go")))
    scene.when(Signal("1", "go", {"n": 1}))
    result = {"kind": "compact_result", "results": {"a": 5, "b": {"n": 1}}, "last": "b"}
    assert scene.state.ended["s"].result == result
    assert scene.state.ctx["seen"] is True


def test_a_child_that_succeeded_ends_its_step() -> None:
    text = SLEEP.replace("kind: sleep, seconds: 60", "kind: playbook, path: other/child")
    scene = given(text, waits(text))
    ((child_id, _),) = scene.decision.inbox
    scene.when(ChildEnded("c", "s#1", child_id, "completed", {"n": 42}))
    assert scene.state.ended["s"].result == {"n": 42}
    assert not scene.state.children


POLICY = "spec: {policy: {rules: [{else: {then: {do: continue}}}]}}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("signal: go, timeout_s: 60", f"signal: go, {POLICY}"),
        ("signal: go, timeout_s: 60", "signal: go, set: {ctx.x: 1}"),
        ("signal: go, timeout_s: 60", "signal: go, assert: {returns: [n]}"),
        ("{kind: wait, signal: go, timeout_s: 60}", "[{name: a, kind: wait, signal: go}, {name: b, kind: noop}]"),
    ],
)
def test_a_worker_goes_on_with_what_has_more_to_do(old: str, new: str) -> None:
    text = WAIT.replace(old, new)
    assert text != WAIT
    scene = given(text, waits(text)).when(Signal("1", "go", {"n": 1}))
    scene.then("signal.received go", "step.scheduled s")
    assert [work.resume is not None for work in scene.decision.work] == [True]


@pytest.mark.parametrize(
    "result",
    [
        {"kind": "result_ref", "ref": "noetl://execution/1/x", "store": "db"},
        {"kind": "compact_result", "results": {"a": 1}, "last": "a"},
    ],
)
def test_a_worker_stores_the_stored_result_of_a_child_anew(result: Any) -> None:
    text = SLEEP.replace("kind: sleep, seconds: 60", "kind: playbook, path: other/child")
    scene = given(text, waits(text))
    ((child_id, _),) = scene.decision.inbox
    scene.when(ChildEnded("c", "s#1", child_id, "completed", result)).then("child.finished", "step.scheduled s")


def test_a_worker_judges_a_time_out_and_a_child_that_failed() -> None:
    given(WAIT, waits(WAIT)).when(TimerDue("t", "wake:s#1")).then("timer.fired", "step.scheduled s")
    text = SLEEP.replace("kind: sleep, seconds: 60", "kind: playbook, path: other/child")
    scene = given(text, waits(text))
    ((child_id, _),) = scene.decision.inbox
    scene.when(ChildEnded("c", "s#1", child_id, "failed")).then("child.finished", "step.scheduled s")


def test_items_that_are_woken_end_the_loop() -> None:
    text = book("- step: s\n  loop: {in: [x, y], iterator: i, mode: parallel}\n  tool: {kind: wait, signal: go}")
    scene = given(text, waits(text, 0, "c1"), waits(text, 1, "c2"))
    scene.when(Signal("1", "go", 1)).then("signal.received go", "step.woken s", "loop.iteration.done s")
    scene.when(Signal("2", "go", 2))
    assert scene.state.ended["s"].result["results"] == [1, 2]
    assert not scene.decision.work


def test_an_item_that_is_woken_makes_room_for_the_next() -> None:
    text = book("- step: s\n  loop: {in: [x, y], iterator: i}\n  tool: {kind: wait, signal: go}")
    scene = given(text, waits(text, 0, "c1")).when(Signal("1", "go", 1))
    assert [work.chunk.items for work in scene.decision.work if work.chunk] == [("y",)]
    scene.when(Signal("2", "go", 2)).when(waits(text, 1, "c2"))
    assert scene.state.ended["s"].result["results"] == [1, 2]


def test_items_that_wrote_different_values_end_the_loop_with_an_error() -> None:
    text = book("- step: s\n  loop: {in: [x, y], iterator: i, mode: parallel}\n  tool: {kind: wait, signal: go}")
    first, second = waits(text, 0, "c1"), waits(text, 1, "c2")
    for number, report in enumerate((first, second)):
        assert report.suspension is not None
        report.suspension.pipeline["writes"] = {"k": number}  # type: ignore[index]
    scene = given(text, first, second, Signal("1", "go", 1)).when(Signal("2", "go", 2))
    assert scene.state.status == "failed"
    assert "wrote different values" in str(scene.state.error)


@pytest.mark.parametrize(
    "broken",
    [
        {"waiting": 5},
        {"waiting": {"cause": 1}},
        {"waiting": {}, "results": 7},
        {"results": {"s_task": 7}},
        {"results": {"s_task": {}}},
        {"prev": {"label": "nobody"}},
        {"visits": 3},
        {"began": "yesterday", "first_began": "then"},
        {"counter": "0"},
        {"counter": -1},
    ],
)
def test_a_snapshot_that_no_pipeline_made_goes_to_a_worker(broken: dict[str, Any]) -> None:
    report = waits(WAIT)
    assert report.suspension is not None
    kept = Suspension("wait", {**report.suspension.pipeline, **broken}, signal="go")
    scene = given(WAIT, Report("r", "s#1", 1, "w1", suspension=kept)).when(Signal("1", "go"))
    scene.then("signal.received go", "step.scheduled s")


GATED = book("""\
- {step: f, tool: {kind: noop}, next: [s, g]}
- {step: s, tool: {kind: wait, signal: go}}
- step: g
  spec: {policy: {admit: {rules: [{when: "{{ event.name == 'signal.received' }}", then: {allow: true}}]}}}
  tool: {kind: noop}""")


def test_a_parked_gate_sees_the_signal_before_the_end_of_the_wait() -> None:
    """It sees one event in each decision; so the wait ends in a later one."""
    scene = given(GATED, done("f#1"), waits(GATED)).when(Signal("1", "go"))
    assert {work.run_id for work in scene.decision.work} == {"s#1", "g#1"}
    scene.when(done("s#1", epoch=2)).when(done("g#1"))
    assert scene.state.status == "completed"


def test_an_execution_under_review_does_not_move() -> None:
    scene = given(WAIT, waits(WAIT), Pause("p", review="restored")).when(Signal("1", "go"))
    assert scene.state.status == "paused"
    assert "s#1" in scene.state.runs
    assert not scene.decision.work
    scene.when(Unpause("u"))
    assert [work.resume is not None for work in scene.decision.work] == [True]


def test_nothing_runs_of_a_loop_that_an_early_signal_ended() -> None:
    loop = "loop: {in: [x, y, z], iterator: i, spec: {mode: parallel, max_in_flight: 3, policy: {exec: local}}}"
    text = book(f"- step: s\n  {loop}\n  tool: {{kind: wait, signal: go}}")
    scene = given(text, Signal("1", "go", 1), Signal("2", "go", 2))
    for number in (0, 1):
        report = waits(text, number, "c1")
        assert report.suspension is not None
        report.suspension.pipeline["writes"] = {"k": number}  # type: ignore[index]
        scene.when(report)
    assert scene.state.status == "failed"
    assert not scene.decision.work
    assert scene.decision.finished == (("9000:s#1:c1", 1),)


@pytest.mark.parametrize("loop", ["", "  loop: {in: [x], iterator: i, mode: parallel}\n"])
def test_no_fork_begins_between_the_wake_and_the_end(loop: str) -> None:
    text = book(f"- step: s\n{loop}  tool: {{kind: wait, signal: go}}\n  next: t\n- {{step: t, tool: {{kind: noop}}}}")
    scene = given(text, waits(text, 0 if loop else None, "c1" if loop else None)).when(Signal("1", "go"))
    woken = scene.last("step.woken").seq
    with pytest.raises(InvalidInput, match="about to"):
        fork(scene.plan, shared(scene.log, woken, "77"), "77")
    assert fork(scene.plan, shared(scene.log, scene.log[-1].seq, "77"), "77").work
