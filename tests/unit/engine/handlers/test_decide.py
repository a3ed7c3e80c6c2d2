"""Decisions: start, step, router, end, and what is committed beside events."""

from __future__ import annotations

from noetl.engine.handlers.decide import late
from noetl.engine.state.execution import Execution, dump, load
from noetl.model.messages import Mend, Pause, Record, Report, Signal, Start, Unpause
from noetl.testing.play import decided
from tests.unit.engine.given import book, broke, done, given

TWO = book("""
- step: one
  tool: {kind: noop}
  next: two
- step: two
  tool: {kind: noop, message: "{{ one.x }}"}
""")


def test_a_start_schedules_the_entry_step() -> None:
    scene = given(TWO)
    scene.then(
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "playbook.started",
        "workflow.started",
        "token.created t1",
        "step.scheduled one",
    )
    (work,) = scene.decision.work
    assert (work.work_id, work.run_id, work.number) == ("9000:one#1", "one#1", 1)
    assert scene.state.status == "running"


def test_a_report_ends_a_step_and_sends_a_token() -> None:
    scene = given(TWO).when(done("one#1", {"x": 5}))
    scene.then("step.started one", "step.done one", "next.evaluated one", "token.created t2", "step.scheduled two")
    assert scene.decision.finished == (("9000:one#1", 1),)
    assert scene.decision.work[0].scopes["steps"] == {"one": {"x": 5}}
    assert scene.decision.has_same_row


def test_a_row_is_the_same_only_while_the_execution_goes_on_as_before() -> None:
    scene = given(TWO)
    assert not scene.decision.has_same_row  # a new one
    assert not scene.when(Mend("m", len(scene.log))).decision.has_same_row  # a repair writes it again
    assert not scene.when(Pause("p")).decision.has_same_row
    assert not scene.when(Unpause("u")).decision.has_same_row
    assert not scene.when(done("one#1")).when(done("two#1", "bye")).decision.has_same_row


def test_the_last_step_ends_the_execution_with_its_result() -> None:
    scene = given(TWO, done("one#1")).when(done("two#1", "bye"))
    scene.then(
        "step.started two",
        "step.done two",
        "next.evaluated two",
        "workflow.finished",
        "playbook.finished",
        "playbook.processed",
    )
    assert scene.decision.projection["status"] == "completed"
    assert scene.decision.projection["result"] == "bye"
    assert scene.decision.projection["steps"]["one"] == {"done": 1, "failed": 0, "skipped": 0}


def test_one_task_step_takes_at_most_seven_rows() -> None:
    scene = given(TWO)
    records = (Record("task.started", 1, "t"), Record("task.done", 2, "t"))
    scene.when(done("one#1", {"x": 1}, records=records))
    about_one = [event for event in scene.log if event.step_run_id == "one#1" or event.entity_id == "t1"]
    own = [event for event in about_one if event.entity_id != "t2"]
    assert len(own) == 7


def test_a_second_start_changes_nothing() -> None:
    scene = given(TWO).when(Start("again", "tests/test", "hash"))
    scene.then()


def test_an_ended_execution_takes_no_message_but_records_a_late_report() -> None:
    scene = given(TWO, done("one#1"), done("two#1"))
    scene.when(Signal("s", "go")).then()
    scene.when(done("two#1", epoch=2)).then("report.late two")
    assert scene.state.status == "completed"


def test_a_fenced_report_is_recorded_as_late_and_changes_nothing_else() -> None:
    scene = given(TWO)
    state = scene.state
    decision = late(scene.plan, state, done("one#1"), 5)
    assert [event.event_type for event in decision.events] == ["report.late"]
    assert list(state.runs) == ["one#1"]


def test_a_message_before_the_start_is_dropped() -> None:
    plan = given(TWO).plan
    assert not decided(plan, Execution("1"), Signal("s", "go"), 1).events


def test_deciding_the_same_message_on_the_same_state_gives_the_same_events() -> None:
    scene = given(TWO)
    first = decided(scene.plan, scene.state, done("one#1"), 7)
    second = decided(scene.plan, scene.state, done("one#1"), 7)
    assert first == second
    assert len({event.event_id for event in first.events}) == len(first.events)


def test_a_snapshot_is_the_state() -> None:
    scene = given(TWO, done("one#1", {"x": 1}))
    assert load(dump(scene.state)) == scene.state


def test_progress_keeps_the_lease_and_is_where_a_new_owner_goes_on() -> None:
    scene = given(TWO)
    record = Record("task.done", 5, "a", status="ok")
    scene.when(Report("p", "one#1", 1, "w1", (record,), pipeline={"at": 1}))
    scene.then("step.started one", "task.done a")
    assert scene.decision.held == (("9000:one#1", 1),)
    assert not scene.decision.finished
    assert scene.state.runs["one#1"].resume == {"pipeline": {"at": 1}}


def test_a_halt_ends_what_runs_and_fails() -> None:
    text = book("- step: s\n  next: [a, b]\n- step: a\n  tool: {kind: noop}\n- step: b\n  tool: {kind: noop}")
    scene = given(text).when(broke("a#1"))
    scene.then(
        "step.started a",
        "step.failed a",
        "next.evaluated a",
        "step.failed b",
        "workflow.finished",
        "playbook.finished",
        "playbook.processed",
    )
    assert scene.decision.dropped == ("9000:b#1",)
    assert scene.state.status == "failed"
    assert scene.state.failures == [{"step": "a", "error": scene.last("playbook.finished").payload["error"]}]
    scene.when(done("b#1")).then("report.late b")
