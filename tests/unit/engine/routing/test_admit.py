"""Gates: rules, parking, retries of parked tokens, signals, `on_parked`."""

from __future__ import annotations

from noetl.model.messages import PatchCtx, Pause, Signal, Unpause
from tests.unit.engine.given import book, done, given


def gated(rules: str, head: str = "", spec: str = "") -> str:
    return book(
        f"""
- step: s
  tool: {{kind: noop}}
  next: g
- step: g
  spec: {{{spec}policy: {{admit: {{rules: {rules}}}}}}}
  tool: {{kind: noop}}
""",
        head,
    )


OPEN_ON_GO = "[{when: '{{ ctx.go }}', then: {allow: true}}]"


def test_the_first_rule_that_matches_decides() -> None:
    rules = "[{when: '{{ s.n > 1 }}', then: {allow: true}}, {else: {then: {allow: false}}}]"
    assert "g#1" in given(gated(rules), done("s#1", {"n": 2})).state.runs
    assert given(gated(rules), done("s#1", {"n": 1})).state.status == "waiting"


def test_without_a_match_and_without_else_it_denies() -> None:
    scene = given(gated(OPEN_ON_GO), done("s#1"))
    scene.then(
        "step.started", "step.done", "next.evaluated", "token.created t2", "policy.admit.evaluated g", "token.parked t2"
    )
    assert scene.state.status == "waiting"
    assert scene.last("policy.admit.evaluated").payload["read"] == {"ctx.go": "(undefined)"}
    assert scene.decision.projection["needs_signal"] is True


def test_a_patch_opens_the_gate_and_another_patch_does_not() -> None:
    scene = given(gated(OPEN_ON_GO), done("s#1"))
    scene.when(PatchCtx("p1", {"other": 1})).then("ctx.patched ctx")
    scene.when(PatchCtx("p2", {"go": True}))
    scene.then("ctx.patched ctx", "policy.admit.evaluated g", "step.scheduled g")


def test_a_signal_is_seen_as_the_event_and_in_ctx() -> None:
    rules = "[{when: \"{{ event.name == 'signal.received' and event.payload.data.by == 'me' }}\", then: {allow: true}}]"
    scene = given(gated(rules), done("s#1")).when(Signal("1", "approve", {"by": "you"}))
    assert scene.state.status == "waiting"
    scene.when(Signal("2", "approve", {"by": "me"}))
    assert "g#1" in scene.state.runs


def test_an_early_signal_opens_a_gate_that_reads_ctx() -> None:
    rules = "[{when: '{{ ctx.signals.approve.ok }}', then: {allow: true}}]"
    scene = given(gated(rules), Signal("1", "approve", {"ok": True}), done("s#1"))
    assert "g#1" in scene.state.runs
    assert scene.state.signals == {"approve": [{"ok": True}]}  # gates do not consume signals


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


def test_an_admitted_run_consumes_every_parked_token() -> None:
    scene = given(AND_JOIN.replace("JOIN", "any"), done("b#1"))
    assert [token.step for token in scene.state.tokens.values() if token.parked] == ["g"]
    scene.when(done("a#1"))
    assert scene.last("step.scheduled").payload["tokens"] == ["t4", "t5"]
    assert scene.state.runs["g#1"].args == {"x": "a", "a": 1, "b": 1}
    assert not scene.state.tokens


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


def test_with_join_each_parked_tokens_come_in_as_there_is_room() -> None:
    text = AND_JOIN.replace("JOIN", "each").replace("workflow:", "executor: {spec: {max_parallel: 2}}\nworkflow:")
    text = text.replace("ctx.a_done and ctx.b_done", "ctx.go")
    scene = given(text, done("b#1"), done("a#1"))
    assert not scene.state.runs
    scene.when(PatchCtx("p", {"go": True}))
    assert [run.args["x"] for run in scene.state.runs.values()] == ["b", "a"]


def test_join_comes_before_the_gate() -> None:
    scene = given(AND_JOIN.replace("JOIN", "all"), done("b#1"))
    assert not [event for event in scene.log if event.event_type == "policy.admit.evaluated"]
    scene.when(done("a#1"))
    assert scene.state.runs["g#1"].args == {"x": "b", "a": 1, "b": 1}


def test_on_parked_finish_completes() -> None:
    scene = given(gated(OPEN_ON_GO, "executor: {spec: {on_parked: finish}}"), done("s#1"))
    assert scene.state.status == "completed"
    assert "parked" in scene.last("token.absorbed").payload["reason"]


def test_on_parked_fail_fails_and_names_the_step() -> None:
    scene = given(gated(OPEN_ON_GO, "executor: {spec: {on_parked: fail}}"), done("s#1"))
    assert scene.state.status == "failed"
    assert scene.state.error is not None
    assert "`g`" in scene.state.error["message"]


def test_parked_tokens_that_are_absorbed_may_release_a_join() -> None:
    text = book(
        """
- step: s
  next: [a, b]
- step: a
  spec: {policy: {admit: {rules: [{when: "{{ ctx.go }}", then: {allow: true}}]}}}
  tool: {kind: noop}
  next: j
- step: b
  tool: {kind: noop}
  next: j
- step: j
  tool: {kind: noop}
""",
        "executor: {spec: {on_parked: finish}}",
    )
    scene = given(text, done("b#1"))
    assert sorted(scene.state.runs) == ["j#1"]
    scene.when(done("j#1"))
    assert scene.state.status == "completed"


def test_nothing_is_scheduled_during_a_pause_and_everything_after_it() -> None:
    scene = given(gated(OPEN_ON_GO), Pause("p"))
    assert scene.state.status == "paused"
    scene.when(done("s#1", {"n": 1}))
    assert [token.parked for token in scene.state.tokens.values()] == [0]
    scene.when(PatchCtx("x", {"go": True}))
    assert not scene.state.runs
    scene.when(Pause("again")).then()
    scene.when(Unpause("r"))
    scene.then("playbook.resumed", "policy.admit.evaluated g", "step.scheduled g")
    scene.when(Unpause("again")).then()


def test_a_gate_that_cannot_be_evaluated_denies_and_says_why() -> None:
    scene = given(gated("[{when: \"{{ 1 < 'a' }}\", then: {allow: true}}]"), done("s#1"))
    assert scene.state.status == "waiting"
    assert "compare" in scene.last("policy.admit.evaluated").payload["errors"][0]


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
