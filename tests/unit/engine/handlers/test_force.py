"""Steps completed by hand: parked, running, suspended, in a loop."""

from __future__ import annotations

from noetl.model.messages import Complete, PatchCtx, Start
from tests.unit.engine.given import Given, book, done, given

GATED = book("""
- step: s
  tool: {kind: noop}
  next: g
- step: g
  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}
  tool: {kind: noop}
  next: after
- step: after
  tool: {kind: noop}
""")
LOOP = book("""
- step: each
  loop: {in: [1, 2, 3], iterator: n}
  tool: {kind: noop}
  next: after
- step: after
  tool: {kind: noop}
""")


def test_a_run_ends_with_the_given_result_and_its_work_is_dropped() -> None:
    scene = given(GATED).when(Complete("c", "s", {"n": 1}, "ada"))
    scene.then(
        "step.forced s",
        "step.done s",
        "next.evaluated s",
        "token.created t2",
        "policy.admit.evaluated g",
        "token.parked t2",
    )
    assert scene.decision.dropped == ("9000:s#1",)
    assert scene.last("step.done").payload["result"] == {"n": 1}
    assert scene.last("step.forced").payload == {"by": "ada"}
    scene = given(GATED).when(Complete("c", "s", {"n": 1}, "ada", "done by phone"))
    assert scene.last("step.forced").payload == {"by": "ada", "reason": "done by phone"}


def test_what_is_parked_is_let_through_without_work() -> None:
    scene = given(GATED, done("s#1")).when(Complete("c", "g", 2))
    assert [event.event_type for event in scene.decision.events][:3] == ["step.forced", "step.scheduled", "step.done"]
    assert [item.step for item in scene.decision.work] == ["after"]
    assert scene.state.ended["g"].result == 2


def test_a_loop_ends_as_a_loop() -> None:
    scene = given(LOOP).when(Complete("c", "each", {"results": []}))
    assert [event.event_type for event in scene.decision.events][:3] == ["step.forced", "loop.done", "step.done"]
    assert "after#1" in scene.state.runs


def test_a_step_with_nothing_to_complete_changes_nothing() -> None:
    for step in ("after", "nowhere"):
        given(GATED).when(Complete("c", step)).then()


def test_the_priority_of_the_start_is_that_of_work_that_names_none() -> None:
    named = GATED.replace("- step: after\n", "- step: after\n  spec: {priority: 1}\n")
    scene = Given(named, ())
    scene.log.clear()
    scene.when(Start("start", "tests/test", "hash", {}, priority=7, trace="00-a-b-01"))
    assert [item.priority for item in scene.decision.work] == [7]
    assert scene.log[0].payload["trace"] == "00-a-b-01"
    scene.when(done("s#1")).when(PatchCtx("p", {"go": True})).when(done("g#1"))
    assert [(item.step, item.priority) for item in scene.decision.work] == [("after", 1)]
