"""Endings: timers, lost leases, children that undo what they did.

Compensations, final steps and time-outs are played in tests/scenarios/compensation_*, end_* and timeout_*.
"""

from __future__ import annotations

import pytest

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
from noetl.testing.play import BEGIN, Said, Script, play
from tests.unit.engine.given import book, broke, done, given

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


def test_a_cancel_ends_a_paused_execution() -> None:
    assert given(FORK, Pause("p")).when(Cancel("c")).state.status == "cancelled"


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
