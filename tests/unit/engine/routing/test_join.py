"""Joins: all, any, n, each; lineage; lost branches; deadlocks; cycles; args."""

from __future__ import annotations

from typing import Any

from noetl.model.messages import Signal
from noetl.model.outcome import failed
from noetl.testing.play import Hold, Script, play
from tests.unit.engine.given import Given, book, broke, done, given


def net(arcs: dict[str, str], joins: dict[str, Any] | None = None, head: str = "") -> str:
    """Build a playbook of `a: "b c"` (all) or `a: "?b c"` (`b` if `ctx.go`, else `c`)."""
    joins = joins or {}
    names = dict.fromkeys([*arcs, *(target.strip("?") for line in arcs.values() for target in line.split())])
    lines = []
    for name in names:
        lines.append(f"- step: {name}\n  tool: {{kind: noop}}")
        if name in joins:
            lines.append(f"  spec: {{join: {joins[name]}}}")
        targets = arcs.get(name, "").split()
        if targets and targets[0].startswith("?"):
            lines.append(f"  next:\n    arcs:\n      - {{step: {targets[0][1:]}, when: '{{{{ ctx.go }}}}'}}")
            lines += [f"      - {{step: {target}}}" for target in targets[1:]]
        elif targets:
            lines.append(f"  next: [{', '.join(targets)}]")
    return book("\n".join(lines), head)


DIAMOND = {"s": "a b", "a": "j", "b": "j"}


def runs_of(script: Script, step: str) -> int:
    return sum(run.startswith(step + "#") for run in script.runs())


def flowing(scene: Given) -> list[str]:
    return sorted(scene.state.runs)


def test_branches_of_a_fork_meet_in_one_run() -> None:
    scene = given(net(DIAMOND), done("s#1"), done("b#1"))
    assert flowing(scene) == ["a#1"]
    scene.when(done("a#1"))
    assert flowing(scene) == ["j#1"]
    assert not scene.state.forks
    assert scene.state.runs["j#1"].lineage == {}


def test_a_sibling_that_failed_and_was_handled_elsewhere_is_not_waited_for() -> None:
    text = net({"s": "a b", "b": "j"}).replace(
        "- step: a\n  tool: {kind: noop}",
        "- step: a\n  tool: {kind: noop}\n  next:\n    arcs:\n      - {step: j}\n"
        "      - {step: c, when: \"{{ event.name == 'step.failed' }}\"}\n- step: c\n  tool: {kind: noop}",
    )
    scene = given(text, done("s#1"), done("b#1"), broke("a#1"))
    assert flowing(scene) == ["c#1", "j#1"]


def test_a_sibling_that_ended_early_is_not_waited_for() -> None:
    text = net({"s": "a b", "a": "?j", "b": "j"})
    script = play(text)
    assert runs_of(script, "j") == 1


def test_exclusive_branches_never_wait_for_each_other() -> None:
    script = play(net({"s": "?a b", "a": "j", "b": "j"}))
    assert script.runs() == ["s#1", "b#1", "j#1"]


def test_a_nested_fork_joins_inside_and_outside() -> None:
    arcs = {"s": "a b", "a": "c d", "c": "k", "d": "k", "k": "j", "b": "j"}
    script = play(net(arcs))
    assert runs_of(script, "k") == runs_of(script, "j") == 1
    scene = given(net(arcs), done("s#1"), done("b#1"), done("a#1"), done("c#1"))
    assert flowing(scene) == ["d#1"]


def test_a_join_over_two_levels_waits_for_all_leaves() -> None:
    arcs = {"s": "a b", "a": "c d", "c": "j", "d": "j", "b": "j"}
    scene = given(net(arcs), done("s#1"), done("b#1"), done("a#1"), done("c#1"))
    assert flowing(scene) == ["d#1"]
    scene.when(done("d#1"))
    assert flowing(scene) == ["j#1"]


def test_any_runs_for_the_first_and_absorbs_the_later() -> None:
    scene = given(net(DIAMOND, {"j": "any"}), done("s#1"), done("b#1"))
    assert flowing(scene) == ["a#1", "j#1"]
    scene.when(done("a#1"))
    assert scene.last("token.absorbed").payload["step"] == "j"
    assert flowing(scene) == ["j#1"]
    scene.when(done("j#1"))
    assert scene.state.status == "completed"


def test_n_of_m_runs_when_enough_have_arrived() -> None:
    arcs = {"s": "a b c", "a": "j", "b": "j", "c": "j"}
    scene = given(net(arcs, {"j": 2}), done("s#1"), done("c#1"))
    assert flowing(scene) == ["a#1", "b#1"]
    scene.when(done("a#1"))
    assert flowing(scene) == ["b#1", "j#1"]
    scene.when(done("j#1")).when(done("b#1"))
    assert scene.state.status == "completed"
    assert scene.state.numbers["run:j"] == 1


def test_an_n_that_cannot_be_reached_fails_the_step_and_names_the_count() -> None:
    arcs = {"s": "a b c", "a": "j", "b": "?j", "c": "?j"}
    script = play(net(arcs, {"j": 2}))
    assert script.status == "failed"
    assert script.state.error is not None
    assert script.state.error["code"] == "JOIN_UNREACHABLE"
    assert "needs 2" in script.state.error["message"]
    assert "only 1" in script.state.error["message"]


def test_each_runs_for_every_token() -> None:
    assert runs_of(play(net(DIAMOND, {"j": "each"})), "j") == 2


def test_a_join_after_an_any_does_not_wait_for_spent_branches() -> None:
    arcs = {"s": "a b", "a": "j", "b": "j", "j": "k"}
    scene = given(net(arcs, {"j": "any"}), done("s#1"), done("a#1"), done("j#1"))
    assert flowing(scene) == ["b#1", "k#1"]


def test_a_branch_that_can_go_round_the_spent_join_is_waited_for() -> None:
    arcs = {"s": "a b", "a": "j", "b": "?j k", "j": "k"}
    scene = given(net(arcs, {"j": "any"}), done("s#1"), done("a#1"), done("j#1"))
    assert flowing(scene) == ["b#1"]
    scene.when(done("b#1"))
    assert flowing(scene) == ["k#1"]


def test_a_winner_may_come_round_again() -> None:
    arcs = {"s": "a b", "a": "j", "b": "j", "j": "?r e", "r": "j"}
    text = net(arcs, {"j": "any"}).replace("- step: s\n", "- step: s\n  set: {ctx.go: true}\n")
    scene = given(text, done("s#1"), done("a#1"), done("j#1"))
    assert flowing(scene) == ["b#1", "r#1"]
    scene.when(done("r#1"))
    assert flowing(scene) == ["b#1", "j#2"]
    scene.when(done("b#1"))
    assert scene.last("token.absorbed").payload["step"] == "j"


def test_a_loser_that_is_left_alone_is_still_absorbed() -> None:
    scene = given(net(DIAMOND, {"j": "any"}), done("s#1"), done("a#1"), done("j#1"))
    assert flowing(scene) == ["b#1"]
    scene.when(done("b#1"))
    assert scene.state.status == "completed"
    assert scene.state.numbers["run:j"] == 1


def test_a_step_that_a_sibling_can_still_come_back_to_waits_for_it() -> None:
    arcs = {"s": "a b", "a": "j", "b": "j", "j": "?a e"}
    scene = given(net(arcs, {"j": "any"}), done("s#1"))
    assert flowing(scene) == ["b#1"]


def test_a_token_that_comes_back_to_the_router_forgets_the_fork() -> None:
    arcs = {"s": "a b", "a": "?s e", "b": "e"}
    text = net(arcs).replace("- step: b\n", "- step: b\n  set: {ctx.go: false}\n")
    scene = given(text.replace("- step: s\n", "- step: s\n  set: {ctx.go: '{{ not done(\"s\") }}'}\n"), done("s#1"))
    scene.when(done("a#1"))
    assert flowing(scene) == ["b#1", "s#2"]
    assert all(not run.lineage for run in scene.state.runs.values())


def test_joins_that_wait_only_for_each_other_release_the_oldest() -> None:
    # x waits for y's branch, which waits at y for x's branch: each can reach the other.
    arcs = {"s": "a b", "a": "x", "b": "y", "x": "y", "y": "x"}
    text = net(arcs).replace("next: [x]\n- step: y", "next: [x]\n- step: y")
    scene = given(text, done("s#1"), done("b#1"))
    assert flowing(scene) == ["a#1"]
    scene.when(done("a#1"))
    assert flowing(scene) == ["y#1"]


def test_a_deadlock_is_not_seen_while_a_sibling_is_still_under_way() -> None:
    arcs = {"s": "a b c", "a": "x", "b": "y", "c": "x", "x": "y", "y": "x"}
    scene = given(net(arcs), done("s#1"), done("a#1"), done("b#1"))
    assert flowing(scene) == ["c#1"]


def test_args_merge_in_arc_order_with_a_warning() -> None:
    text = book("""
- step: s
  next: [a, b]
- step: a
  tool: {kind: noop}
  next:
    arcs: [{step: j, args: {x: from_a, y: 1, same: 0}}]
- step: b
  tool: {kind: noop}
  next:
    arcs: [{step: j, args: {x: from_b, z: 2, same: 0}}]
- step: j
  tool: {kind: noop}
""")
    scene = given(text, done("b#1"), done("a#1"))
    payload = scene.last("step.scheduled").payload
    assert payload["args"] == {"x": "from_b", "y": 1, "z": 2, "same": 0}
    assert len(payload["warnings"]) == 1
    assert "args.x" in payload["warnings"][0]


def test_a_parked_sibling_keeps_a_join_open() -> None:
    text = net(DIAMOND).replace(
        "- step: a\n  tool: {kind: noop}",
        "- step: a\n  tool: {kind: noop}\n  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}",
    )
    scene = given(text, done("s#1"), done("b#1"))
    assert scene.state.status == "waiting"
    assert [(token.step, bool(token.parked)) for token in scene.state.tokens.values()] == [("a", True), ("j", False)]


def test_a_run_that_is_held_keeps_a_join_open() -> None:
    script = Script(net(DIAMOND), {"a": Hold()}).run()
    assert sorted(script.state.runs) == ["a#1"]
    script.tell(Signal("x", "nothing"))
    assert sorted(script.state.runs) == ["a#1"]


def test_a_failure_with_continue_ends_its_branch_and_releases_the_join() -> None:
    text = net(DIAMOND, head="executor: {spec: {on_step_fail: continue}}").replace(
        "- step: a\n  tool: {kind: noop}\n  next: [j]",
        "- step: a\n  tool: {kind: noop}\n  next:\n    arcs:\n      - {step: j, when: \"{{ outcome.status == 'ok' }}\"}",
    )
    script = play(text, {"a": failed("timeout", "late")})
    assert runs_of(script, "j") == 1
    assert script.status == "failed"
