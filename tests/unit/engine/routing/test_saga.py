"""Endings: time-outs, cancellation, compensation, the final step, lost leases."""

from __future__ import annotations

import pytest

from noetl.engine.plan.plan import plan
from noetl.engine.routing.start import check
from noetl.model.errors import InvalidPayload
from noetl.model.messages import (
    AnyMessage,
    Cancel,
    ChildEnded,
    LeaseLost,
    Pause,
    Record,
    Report,
    Start,
    Suspension,
    TimerDue,
)
from noetl.model.outcome import failed
from noetl.testing.play import BEGIN, Hold, Said, Script, play, read
from tests.unit.engine.given import book, broke, done, given

BROKEN = failed("server_error", "it broke")
FORK = book("- step: s\n  next: [a, b]\n- step: a\n  tool: {kind: noop}\n- step: b\n  tool: {kind: noop}")


def began(run_id: str, at: int = BEGIN + 1, epoch: int = 1) -> Report:
    return Report(f"began-{run_id}-{epoch}", run_id, epoch, "w1", (Record("task.started", at, "t"),))


@pytest.mark.parametrize("spec", ["{timeout_s: 5}", "{policy: {lifecycle: {timeout_s: 5}}}"])
def test_the_time_of_a_step_runs_from_its_start(spec: str) -> None:
    scene = given(book(f"- step: s\n  spec: {spec}\n  tool: {{kind: noop}}"))
    assert not scene.state.timers  # it may wait for a worker as long as it takes
    scene.at += 60_000
    scene.when(began("s#1", at=scene.at - 200))  # what a worker tells is a little old
    assert scene.decision.timers == (("step:s#1", scene.at - 1 - 200 + 5000),)
    scene.when(LeaseLost("l", "s#1", 1)).when(began("s#1", scene.at, epoch=2))
    assert "timer.set" not in [
        event.event_type for event in scene.decision.events
    ]  # the second delivery has what is left of the time
    scene.when(TimerDue("t", "step:s#1"))
    assert scene.state.status == "failed"
    assert scene.state.error is not None
    assert scene.state.error["kind"] == "timeout"
    assert scene.state.error["message"] == "the step `s` took longer than 5 s"
    assert scene.decision.dropped == ("9000:s#1",)


def test_a_deadline_runs_from_the_scheduling() -> None:
    scene = given(book("- step: s\n  spec: {policy: {lifecycle: {deadline_s: 5}}}\n  tool: {kind: noop}"))
    assert scene.decision.timers == (("deadline:s#1", BEGIN + 1 + 5000),)
    assert scene.decision.work[0].deadline == BEGIN + 1 + 5000
    scene.when(TimerDue("t", "deadline:s#1"))
    assert scene.state.error is not None
    assert scene.state.error["kind"] == "timeout"
    assert "took longer than 5 s from when it was scheduled" in scene.state.error["message"]


def test_a_step_that_ends_in_time_clears_its_timers() -> None:
    spec = "{timeout_s: 5, policy: {lifecycle: {deadline_s: 9}}}"
    scene = given(book(f"- step: s\n  spec: {spec}\n  tool: {{kind: noop}}"), began("s#1")).when(done("s#1"))
    assert scene.decision.cleared == ("deadline:s#1", "step:s#1")


def test_a_step_that_ends_with_its_first_report_never_has_a_timer() -> None:
    scene = given(book("- step: s\n  spec: {timeout_s: 5}\n  tool: {kind: noop}")).when(done("s#1"))
    assert "timer.set" not in [event.event_type for event in scene.log]


def test_a_time_out_can_be_routed() -> None:
    text = book("""
- step: s
  spec: {policy: {lifecycle: {deadline_s: 5}}}
  tool: {kind: noop}
  next:
    arcs:
      - {step: t, when: "{{ event.name == 'step.failed' and outcome.error.kind == 'timeout' }}"}
- step: t
  tool: {kind: noop}
""")
    script = Script(text, {"s": Hold()}).run()
    assert script.runs() == ["s#1", "t#1"]
    assert script.status == "completed"


def test_a_whole_loop_can_take_too_long() -> None:
    text = book("- step: s\n  loop: {in: [1, 2], iterator: i, total_timeout_ms: 100}\n  tool: {kind: noop}")
    script = Script(text, {"s": Hold()}).run()
    assert script.state.error is not None
    assert script.state.error["kind"] == "timeout"
    assert "loop" in script.state.error["message"]


def test_an_execution_that_takes_too_long_fails_without_its_final_step() -> None:
    text = FORK.replace("workflow:", "executor: {spec: {timeout_s: 9, final_step: b}}\nworkflow:")
    scene = given(text).when(TimerDue("t", "execution"))
    assert scene.state.status == "failed"
    assert scene.state.error is not None
    assert scene.state.error["kind"] == "timeout"
    assert "run:b" not in scene.state.numbers


def test_a_cancel_ends_what_runs() -> None:
    scene = given(FORK).when(Cancel("c", "enough", by="me"))
    scene.then(
        "execution.cancelled",
        "step.failed a",
        "step.failed b",
        "workflow.finished",
        "playbook.finished",
        "playbook.processed",
    )
    assert scene.state.status == "cancelled"
    assert set(scene.decision.dropped) == {"9000:a#1", "9000:b#1"}


def test_a_cancel_ends_a_paused_execution() -> None:
    assert given(FORK, Pause("p")).when(Cancel("c")).state.status == "cancelled"


def test_one_run_can_be_cancelled() -> None:
    scene = given(FORK.replace("workflow:", "executor: {spec: {on_step_fail: continue}}\nworkflow:"))
    scene.when(Cancel("c", "not this", run_id="a#1"))
    assert list(scene.state.runs) == ["b#1"]
    assert scene.last("step.failed").payload["error"]["kind"] == "cancelled"


def test_a_lost_lease_hands_the_work_out_again() -> None:
    scene = given(FORK).when(LeaseLost("l", "a#1", 1))
    scene.then()
    assert [work.work_id for work in scene.decision.work] == ["9000:a#1"]


def test_deliveries_that_are_used_up_fail_the_step() -> None:
    scene = given(FORK).when(LeaseLost("l", "a#1", 5, exhausted=True))
    assert scene.state.status == "failed"
    assert scene.state.error is not None
    assert scene.state.error["code"] == "LEASE_LOST"


@pytest.mark.parametrize("spec", ["limits: {max_attempts: 2}", "retries: {dispatch: {max_attempts: 2}}"])
def test_a_playbook_may_allow_fewer_deliveries_than_the_server(spec: str) -> None:
    text = FORK.replace("workflow:", f"executor: {{spec: {{{spec}}}}}\nworkflow:")
    scene = given(text).when(LeaseLost("l", "a#1", 1, attempt=1))
    assert scene.state.status == "running"
    scene.when(LeaseLost("m", "a#1", 2, attempt=2))
    assert scene.state.error is not None
    assert scene.state.error["code"] == "LEASE_LOST"


SAGA = book(
    """
- step: a
  tool: {kind: noop}
  compensate: undo_a
  next: b
- step: b
  tool: {kind: noop}
  compensate: undo_b
  next: c
- step: c
  tool: {kind: noop}
- step: undo_a
  tool: {kind: noop, message: "{{ a.id }}"}
  next: c
- step: undo_b
  tool: {kind: noop}
""",
    "policy: {rollback: on_fail}",
)


def test_compensation_runs_newest_first_with_the_original_result() -> None:
    script = play(SAGA, {"a": {"id": 7}, "c": BROKEN})
    assert script.runs() == ["a#1", "b#1", "c#1", "undo_b#1", "undo_a#1"]
    assert script.status == "failed"
    assert script.of("playbook.finished")[0].payload["compensated"] is True
    assert script.state.counts["c"]["failed"] == 1  # the compensation's own `next` is not followed


def test_the_original_result_is_in_the_compensations_scope() -> None:
    scene = given(SAGA, done("a#1", {"id": 7}), done("b#1"), broke("c#1"), done("undo_b#1"))
    assert scene.decision.work[0].scopes["steps"] == {"a": {"id": 7}}
    assert scene.decision.work[0].role == "compensation"


def test_no_compensation_without_a_failure_or_without_the_policy() -> None:
    assert play(SAGA).runs() == ["a#1", "b#1", "c#1"]
    assert play(SAGA.replace("policy: {rollback: on_fail}", ""), {"c": BROKEN}).runs() == ["a#1", "b#1", "c#1"]


def test_a_compensation_that_fails_is_tried_again_then_given_up() -> None:
    script = play(SAGA, {"c": BROKEN, "undo_b": BROKEN})
    assert script.runs()[3:] == ["undo_b#1", "undo_b#2", "undo_b#3", "undo_a#1"]
    assert script.of("playbook.finished")[0].payload["compensated"] is False
    assert [event.payload.get("dead", False) for event in script.of("step.failed")[1:]] == [False, False, True]


FINAL = book(
    """
- step: a
  tool: {kind: noop}
  next: [b, last]
- step: b
  tool: {kind: noop}
- step: last
  tool: {kind: noop}
  next: b
""",
    "executor: {spec: {final_step: last}}",
)


def test_the_final_step_runs_once_with_what_happened() -> None:
    script = play(FINAL, {"a": 1, "b": 2, "last": "end"})
    assert script.runs() == ["a#1", "b#1", "last#1"]
    assert script.result == "end"
    args = script.of("step.scheduled")[-1].payload["args"]
    assert args == {
        "counts": {"done": 2, "failed": 0, "skipped": 0},
        "failures": [],
        "results": {"a": 1, "b": 2},
    }
    assert script.of("token.absorbed")[0].payload["step"] == "last"


def test_the_final_step_runs_after_a_halt() -> None:
    script = play(FINAL, {"a": BROKEN})
    assert script.runs() == ["a#1", "last#1"]
    assert script.status == "failed"
    assert script.of("step.scheduled")[-1].payload["args"]["failures"][0]["step"] == "a"


def test_the_final_step_does_not_run_after_a_cancel() -> None:
    scene = given(FINAL).when(Cancel("c"))
    assert "run:last" not in scene.state.numbers


def test_a_final_step_that_fails_fails_the_execution() -> None:
    assert play(FINAL, {"last": BROKEN}).status == "failed"


def test_the_order_of_ending_is_compensation_then_final_step() -> None:
    text = (
        SAGA.replace("policy:", "executor: {spec: {final_step: end}}\npolicy:") + "- step: end\n  tool: {kind: noop}\n"
    )
    assert play(text, {"c": BROKEN}).runs()[3:] == ["undo_b#1", "undo_a#1", "end#1"]


def test_the_result_is_that_of_the_last_step_that_finished() -> None:
    scene = given(FORK, done("b#1", "b"), done("a#1", "a"))
    assert scene.state.result == "a"


WORKLOAD = book(
    "- step: s\n  tool: {kind: noop}",
    """
workload: {a: {x: 1, y: 2}, list: [1, 2], id: "{{ execution_id }}"}
executor:
  spec:
    workload_schema: {type: object, properties: {n: {type: integer}}}
""",
)


def test_the_workload_is_rendered_and_the_payload_wins() -> None:
    script = play(WORKLOAD, payload={"a": {"y": 3}, "list": [9], "n": 1})
    assert script.state.workload == {"a": {"x": 1, "y": 3}, "list": [9], "id": "900000000000000001", "n": 1}


def test_a_payload_that_does_not_fit_is_refused_with_the_place() -> None:
    with pytest.raises(InvalidPayload, match=r"workload\.n: 'many' is not of type 'integer'"):
        check(plan(read(WORKLOAD), "hash"), "1", Start("m", "p", "hash", {"n": "many"}), BEGIN)


def test_a_child_with_such_a_payload_fails_and_says_so() -> None:
    script = Script(WORKLOAD, payload={"n": "many"}, parent={"execution_id": "7", "run_id": "p#1"})
    script.start()
    assert script.status == "failed"
    assert script.sent[0][0] == "7"
    script.check()


def test_the_entry_step_may_be_named() -> None:
    script = play(FORK.replace("workflow:", "executor: {spec: {entry_step: b}}\nworkflow:"))
    assert script.runs() == ["b#1"]


PARENT = {"execution_id": "1", "run_id": "call#1"}


def ended_child(*messages: AnyMessage, **parent: str) -> ChildEnded:
    """Return the message of a child of two steps to its parent when it ends."""
    text = book("- {step: a, tool: {kind: noop}, next: b}\n- {step: b, tool: {kind: noop}}")
    scene = given(text)
    scene.log.clear()
    scene.when(Start("start", "tests/test", "hash", {}, {**PARENT, **parent}))
    for message in messages:
        scene.when(message)
    [(to, word)] = scene.decision.inbox
    assert to == "1"
    assert isinstance(word, ChildEnded)
    assert (word.run_id, word.child_id) == ("call#1", "9000")
    return word


def test_what_a_child_tells_its_parent() -> None:
    well = ended_child(done("a#1", 1), done("b#1", 2))
    assert (well.status, well.result, well.error) == ("completed", 2, None)
    assert ended_child(done("a#1", 1), done("b#1", 2), return_step="a").result == 1
    assert ended_child(done("a#1", 1), done("b#1", 2), return_step="nowhere").result == 2
    bad = ended_child(broke("a#1"))
    assert bad.status == "failed"
    assert bad.error == {"kind": "server_error", "message": "it broke", "retryable": False}
    gone = ended_child(Cancel("c", "enough"))
    assert gone.status == "cancelled"
    assert gone.error == {"kind": "cancelled", "message": "enough", "retryable": False}


CALLS = book(
    "- {step: a, tool: {kind: noop}, compensate: undo_a, next: b}\n"
    "- {step: b, tool: {kind: playbook, path: child}, compensate: undo_b}\n"
    "- {step: undo_a, tool: {kind: noop}}\n- {step: undo_b, tool: {kind: noop, result: '{{ b }}'}}"
)


def calling() -> Script:
    child = Said(suspend=Suspension("playbook", {}, child={"path": "child", "payload": {}}))
    return Script(CALLS, {"b": child}).run(timers=False)


@pytest.mark.parametrize(
    ("status", "compensated", "undone", "all_of_it"),
    [
        ("cancelled", True, ["undo_a#1"], True),
        ("cancelled", False, ["undo_a#1"], False),
        ("completed", None, ["undo_b#1", "undo_a#1"], True),  # it completed before the cancellation
        ("failed", None, ["undo_a#1"], True),
    ],
)
def test_a_parent_undoes_its_steps_after_its_child_did(
    status: str, compensated: bool | None, undone: list[str], all_of_it: bool
) -> None:
    script = calling()
    [child] = script.state.children
    script.tell(Cancel("c", "enough", compensate=True))
    assert script.sent[-1] == (child, Cancel("c/0", "its parent 900000000000000001 ended the step", compensate=True))
    script.run()
    assert (script.state.phase, script.runs()) == ("closing", ["a#1", "b#1"])
    script.tell(ChildEnded("e", "b#1", child, status, 7, None, compensated))
    script.run()
    assert (script.status, script.runs()[2:], script.state.compensated) == ("cancelled", undone, all_of_it)
    assert [event.step_run_id for event in script.of("child.finished")] == ["b#1"]
    script.check()
    script.tell(ChildEnded("again", "b#1", child, status))
    script.check()


def test_waiting_for_a_child_that_undoes_is_not_cancelled_and_can_be_abandoned() -> None:
    script = calling()
    [child] = script.state.children
    script.tell(Cancel("c", "enough", compensate=True))
    script.tell(Cancel("d", "once more"))
    assert script.of("execution.cancelled")[-1].payload["error"]["message"] == "enough"
    script.tell(Cancel("e", "by hand", by="ada", abandon=True))
    assert script.sent[-1] == (child, Cancel("e/0", "by hand", by="ada", abandon=True))
    assert (script.status, script.state.compensated, script.state.children) == ("cancelled", False, {})
    assert script.of("execution.cancelled")[-1].payload["abandoned"] == ["a#1"]
    script.check()
