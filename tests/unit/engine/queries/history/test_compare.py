"""Two executions side by side, from their tracks."""

from __future__ import annotations

from noetl.engine.queries.history.compare import ArcSide, Comparison, StepSide, compare, decided
from noetl.engine.queries.track import Track, build
from noetl.testing.play import Said, Script

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkload: {n: 1}\nworkflow:\n"
BRANCH = """\
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: b, when: '{{ workload.n > 1 }}'}, {step: c}]}
- step: b
  tool: {kind: noop}
- step: c
  tool: {kind: noop}
  next: {arcs: [{step: d, when: '{{ workload.n > 0 }}'}]}
- step: d
  tool: {kind: noop}
"""
CYCLE = """\
- step: a
  set: {ctx.i: '{{ ctx.i | default(0) + 1 }}'}
  tool: {kind: noop}
  next: {arcs: [{step: a, when: '{{ ctx.i < workload.n }}'}, {step: b}]}
- step: b
  tool: {kind: noop}
"""
GATE = """\
- step: a
  tool: {kind: noop}
  next: b
- step: b
  spec: {policy: {admit: {rules: [{when: '{{ workload.n > 1 }}', then: {allow: true}}]}}}
  tool: {kind: noop}
"""
FAILS = Said(error={"kind": "unknown", "message": "no"})


def played(workflow: str, n: int = 1, **outcomes: object) -> Script:
    return Script(HEAD + workflow, outcomes, payload={"n": n}).run(timers=False)


def track(script: Script, most_marks: int = 2_000) -> Track:
    made = build(script.plan, script.state.execution_id, script.events)
    if most_marks < 2_000:
        made.thinned.update(key for key in made.series if key.startswith("a:"))
    return made


def compared(this: Script, other: Script) -> Comparison:
    return compare(track(this), track(other))


def test_an_execution_does_not_differ_from_one_that_did_the_same() -> None:
    found = compared(played(BRANCH), played(BRANCH))
    assert (found.arcs, found.split, found.unaligned) == ([], None, [])
    assert [(one.step, one.differs, one.this.state) for one in found.steps] == [
        ("a", False, "done"),
        ("c", False, "done"),
        ("d", False, "done"),
    ]
    assert found.steps[0].this.runs == 1


def test_the_first_decision_that_differs_has_the_values_that_both_read() -> None:
    this, other = played(BRANCH, 5), played(BRANCH, 0)
    found = compared(this, other)
    assert found.split is not None
    assert (found.split.step, found.split.number, found.split.arc) == ("a", 1, 0)
    here, there = (
        decided(script.events[seq - 1]) for script, seq in ((this, found.split.seq), (other, found.split.other_seq))
    )
    assert (here.run, here.event) == ("a#1", "step.done")
    assert [(one.target, one.holds, one.taken, one.read) for one in here.arcs] == [("b", True, True, {"workload.n": 5})]
    assert [(one.target, one.holds, one.taken, one.read) for one in there.arcs] == [
        ("b", False, False, {"workload.n": 0}),
        ("c", True, True, None),
    ]
    assert there.arcs[0].when == "{{ workload.n > 1 }}"


def test_arcs_and_steps_of_both_are_side_by_side() -> None:
    found = compared(played(BRANCH, 5), played(BRANCH, 1))
    arcs = {f"{one.source}#{one.arc}": (one.this, one.other) for one in found.arcs}
    assert arcs == {
        "a#0": (ArcSide("b", 1, 0), ArcSide("b", 0, 1)),
        "a#1": (ArcSide("c", 0, 0), ArcSide("c", 1, 0)),
        "c#0": (ArcSide("d", 0, 0), ArcSide("d", 1, 0)),
    }
    steps = {one.step: one for one in found.steps}
    assert list(steps) == ["a", "b", "c", "d"]
    assert (steps["c"].this, steps["c"].other.state, steps["c"].differs) == (StepSide(), "done", True)


def test_a_step_that_failed_is_the_first_decision_that_differs() -> None:
    this, other = played(BRANCH, a=FAILS), played(BRANCH)
    found = compared(this, other)
    assert found.split is not None
    assert decided(this.events[found.split.seq - 1]).event == "step.failed"
    assert (found.steps[0].this.state, found.steps[0].other.state) == ("failed", "done")


def test_the_decisions_of_a_cycle_are_compared_one_by_one() -> None:
    found = compared(played(CYCLE, 4), played(CYCLE, 2))
    assert found.split is not None
    assert (found.split.step, found.split.number, found.split.arc) == ("a", 2, 0)
    assert (found.steps[0].this.runs, found.steps[0].other.runs) == (4, 2)


def test_arcs_that_moved_in_the_file_are_the_same_if_they_lead_to_one_step() -> None:
    moved = BRANCH.replace(
        "[{step: b, when: '{{ workload.n > 1 }}'}, {step: c}]",
        "[{step: d, when: '{{ workload.n > 9 }}'}, {step: b, when: '{{ workload.n > 1 }}'}, {step: c}]",
    )
    found = compared(played(moved), played(BRANCH))
    assert found.split is None


def test_routers_that_decided_too_often_are_named_and_not_compared() -> None:
    found = compare(track(played(CYCLE, 4), most_marks=2), track(played(CYCLE, 2)))
    assert (found.split, found.unaligned) == (None, ["a"])


def test_a_gate_that_admits_only_one_is_where_they_part() -> None:
    this, other = played(GATE, 1), played(GATE, 5)
    found = compared(this, other)
    assert found.split is not None
    assert (found.split.step, found.split.number, found.split.arc) == ("b", 1, -1)
    here, there = (
        decided(script.events[seq - 1], script.plan).gate
        for script, seq in ((this, found.split.seq), (other, found.split.other_seq))
    )
    assert here is not None
    assert there is not None
    assert (here.admits, here.when, here.read, here.errors) == (False, "{{ workload.n > 1 }}", {"workload.n": 1}, [])
    assert (there.admits, there.read) == (True, {"workload.n": 5})
    assert compared(played(GATE, 5), played(GATE, 6)).split is None


def test_a_gate_that_opens_later_has_decided_once() -> None:
    opens = GATE.replace("workload.n > 1", "ctx.n > 1").replace("next: b", "next: [b, c]") + (
        "- step: c\n  tool: {kind: noop}\n  set: {ctx.n: '{{ workload.n }}'}\n"
    )
    late = track(played(opens, 5))
    assert list(late.series["h:b"].values) == [1]
    assert "g:b" not in late.series
    assert compare(late, late).split is None
