"""Gates: tokens that arrive while others are parked, pauses, room.

Rules, signals, patches and `on_parked` are played in tests/scenarios/admit_* and parked_*.
"""

from __future__ import annotations

from noetl.engine.plan.plan import MAX_STEP_RUNS, plan
from noetl.model.messages import PatchCtx, Pause, Unpause
from noetl.testing.play import read
from tests.unit.engine.given import book, done, given

GATED = book("""
- {step: s, tool: {kind: noop}, next: g}
- step: g
  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}
  tool: {kind: noop}
""")
AND_JOIN = book("""
- step: s
  next: [a, b]
- step: a
  tool: {kind: noop}
  set: {ctx.a_done: true}
  next:
    arcs: [{step: g, args: {x: a, a: 1}}]
- step: b
  tool: {kind: noop}
  set: {ctx.b_done: true}
  next:
    arcs: [{step: g, args: {x: b, b: 1}}]
- step: g
  spec: {join: JOIN, policy: {admit: {rules: [{when: "{{ ctx.a_done and ctx.b_done }}", then: {allow: true}}]}}}
  tool: {kind: noop}
""")


def test_with_join_each_the_gate_admits_one_by_one_oldest_first() -> None:
    scene = given(AND_JOIN.replace("JOIN", "each"), done("b#1"), done("a#1"))
    assert {run_id: run.args["x"] for run_id, run in scene.state.runs.items()} == {"g#1": "b", "g#2": "a"}


def test_with_join_each_a_parked_token_whose_args_are_denied_stays_behind_a_younger_one() -> None:
    rule = "{when: \"{{ args.x == 'a' }}\", then: {allow: true}}"
    text = AND_JOIN.replace("JOIN", "each").replace(
        '{when: "{{ ctx.a_done and ctx.b_done }}", then: {allow: true}}', rule
    )
    scene = given(text, done("b#1"), done("a#1"))
    assert [run.args["x"] for run in scene.state.runs.values()] == ["a"]
    assert [token.args["x"] for token in scene.state.tokens.values() if token.parked] == ["b"]


def test_nothing_is_scheduled_during_a_pause_and_everything_after_it() -> None:
    scene = given(GATED, Pause("p"))
    assert scene.state.status == "paused"
    scene.when(done("s#1", {"n": 1}))
    assert [token.parked for token in scene.state.tokens.values()] == [0]
    scene.when(PatchCtx("x", {"go": True}))
    assert not scene.state.runs
    scene.when(Pause("again")).then()
    scene.when(Unpause("r"))
    scene.then("playbook.resumed", "policy.admit.evaluated g", "step.scheduled g")
    scene.when(Unpause("again")).then()


def test_gates_are_tried_after_all_tokens_of_a_routing_exist() -> None:
    text = book("""
- step: s
  tool: {kind: noop}
  next:
    spec: {mode: inclusive}
    arcs:
      - {step: g, set: {ctx.one: true}}
      - {step: h, set: {ctx.two: true}}
- step: g
  spec: {policy: {admit: {rules: [{when: "{{ ctx.two }}", then: {allow: true}}]}}}
  tool: {kind: noop}
- step: h
  tool: {kind: noop}
""")
    scene = given(text, done("s#1"))
    assert sorted(scene.state.runs) == ["g#1", "h#1"]


EACH = book(
    """
- {step: s, tool: {kind: noop}, next: [a, b, c]}
- {step: a, tool: {kind: noop}, next: g}
- {step: b, tool: {kind: noop}, next: g}
- {step: c, tool: {kind: noop}, next: g}
- step: g
  spec: {join: each, policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}
  tool: {kind: noop}
""",
    "executor: {spec: {max_parallel: 2}}",
)


def test_parked_tokens_are_let_in_as_far_as_there_is_room() -> None:
    scene = given(EACH, *(done(f"{name}#1") for name in "sabc"))
    assert (scene.state.status, len(scene.state.tokens)) == ("waiting", 3)
    scene.when(PatchCtx("go", {"go": True}))
    assert list(scene.state.runs) == ["g#1", "g#2"]
    scene.when(done("g#1"))
    assert list(scene.state.runs) == ["g#2", "g#3"]


def test_a_token_that_arrives_where_there_is_no_room_waits_behind_those_that_are_parked() -> None:
    scene = given(EACH, *(done(f"{name}#1") for name in "sab"))
    assert sorted(scene.state.runs) == ["c#1"]
    scene.when(PatchCtx("go", {"go": True}))
    assert sorted(scene.state.runs) == ["c#1", "g#1"]
    scene.when(done("c#1"))
    assert sorted(scene.state.runs) == ["g#1", "g#2"]
    assert len(scene.state.tokens) == 1
    assert scene.when(done("g#1")).when(done("g#2")).when(done("g#3")).state.status == "completed"


CYCLE = book("""
- {step: fetch, tool: {kind: noop}, next: check}
- step: check
  spec: {limits: {max_step_runs: 2}}
  tool: {kind: noop}
  next: [{step: fetch, when: "{{ not ctx.stop }}"}]
""")


def test_a_step_that_reaches_its_limit_of_runs_ends_the_execution_and_names_the_cycle() -> None:
    scene = given(CYCLE, *[done(f"{step}#{n}") for n in (1, 2) for step in ("fetch", "check")])
    scene.when(done("fetch#3"))
    error = scene.last("playbook.finished").payload["error"]
    assert (scene.state.status, error["code"]) == ("failed", "MAX_STEP_RUNS")
    assert "step `check` has run 2 times" in error["message"]
    assert "check → fetch → check" in error["message"]
    assert "check#3" not in {event.step_run_id for event in scene.log}


def test_every_step_has_a_limit_of_runs_by_default() -> None:
    known = plan(read(GATED), "").steps["g"]
    assert known.max_runs == MAX_STEP_RUNS == 10_000
