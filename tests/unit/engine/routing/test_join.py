"""Joins: lineage, branches that may still arrive, args.

Every kind of join is played in tests/scenarios/join_* and pattern_*.
"""

from __future__ import annotations

from typing import Any

from noetl.model.messages import Signal
from noetl.model.outcome import failed
from noetl.testing.play import Hold, Script, play
from tests.unit.engine.given import Given, book, done, given


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


def flowing(scene: Given) -> list[str]:
    return sorted(scene.state.runs)


def test_branches_of_a_fork_meet_in_one_run() -> None:
    scene = given(net(DIAMOND), done("s#1"), done("b#1"))
    assert flowing(scene) == ["a#1"]
    scene.when(done("a#1"))
    assert flowing(scene) == ["j#1"]
    assert not scene.state.forks
    assert scene.state.runs["j#1"].lineage == {}


def test_a_branch_that_can_go_round_the_spent_join_is_waited_for() -> None:
    arcs = {"s": "a b", "a": "j", "b": "?j k", "j": "k"}
    scene = given(net(arcs, {"j": "any"}), done("s#1"), done("a#1"), done("j#1"))
    assert flowing(scene) == ["b#1"]
    scene.when(done("b#1"))
    assert flowing(scene) == ["k#1"]


def test_a_step_that_a_sibling_can_still_come_back_to_waits_for_it() -> None:
    arcs = {"s": "a b", "a": "j", "b": "j", "j": "?a e"}
    scene = given(net(arcs, {"j": "any"}), done("s#1"))
    assert flowing(scene) == ["b#1"]


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
    assert [run for run in script.runs() if run.startswith("j#")] == ["j#1"]
    assert script.status == "failed"
