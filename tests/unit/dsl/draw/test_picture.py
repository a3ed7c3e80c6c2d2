"""What a picture knows of a playbook: marks, outcomes of arcs, joins, gaps."""

from __future__ import annotations

import pytest

from noetl.dsl.draw import Picture, Vertex
from tests.unit.dsl.draw.samples import pictured


def vertex(picture: Picture, name: str) -> Vertex:
    return next(found for found in picture.vertices if found.name == name)


def test_steps_carry_their_marks() -> None:
    picture = pictured(
        """
  - step: a
    desc: the first
    spec: {policy: {admit: {rules: [{when: "{{ ctx.x }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
    loop: {in: "{{ workload.xs }}", iterator: x, spec: {mode: parallel, max_in_flight: 3}}
    tool: [{get: {kind: http}}, {kind: python}]
    next: b
  - step: b
    spec: {join: any}
    tool: {kind: noop}
""",
        "executor: {spec: {final_step: b}}\n",
    )
    a, b = picture.vertices
    assert (picture.entry, picture.final) == (0, 1)
    assert a.tasks == (("get", "http"), ("task_1", "python"))
    assert (a.desc, a.gate, a.join) == ("the first", ("ctx.x",), "")
    assert a.loop is not None
    assert (a.loop.iterator, a.loop.over, a.loop.mode, a.loop.max_in_flight) == ("x", "workload.xs", "parallel", "3")
    assert (b.gate, b.loop, b.join) == (None, None, "any")


def test_a_cursor_says_what_it_claims_from() -> None:
    picture = pictured("""
  - step: a
    loop: {cursor: {kind: postgres, claim: SELECT 1, key: id}}
    tool: {kind: noop}
""")
    assert picture.vertices[0].loop is not None
    assert picture.vertices[0].loop.over == "rows of a postgres cursor"


def test_conditions_are_shown_as_written_on_one_line() -> None:
    picture = pictured("""
  - step: a
    next:
      - step: a
        when: >
          {{ output.data.x
          and vars.y }}
      - {step: a, when: "{{ a }} and {{ b }}"}
      - {step: a, when: true}
""")
    assert [link.when for link in picture.links] == ["output.data.x and vars.y", "{{ a }} and {{ b }}", "true"]


@pytest.mark.parametrize(
    ("when", "outcome"),
    [
        ("{{ event.name == 'step.failed' }}", "failure"), ("{{ event.name == 'call.error' }}", "failure"),
        ("{{ outcome.status == 'error' and ctx.x }}", "failure"), ("{{ output.status == 'error' }}", "failure"),
        ("{{ event.name == 'step.done' }}", "success"), ("{{ event.name == 'call.done' and ctx.x }}", "success"),
        ("{{ outcome.status == 'ok' }}", "success"), ("{{ ctx.x }}", "any"), ("{{ broken", "any"),
    ],
)  # fmt: skip
def test_arcs_know_after_what_they_are_taken(when: str, outcome: str) -> None:
    picture = pictured(f"""
  - step: a
    next: {{arcs: [{{step: a, when: "{when}"}}]}}
""")
    assert picture.links[0].outcome == outcome


def test_an_arc_without_a_condition_is_taken_on_success() -> None:
    assert pictured("  - {step: a, next: a}\n").links[0].outcome == "success"


def test_a_step_that_nobody_wrote_is_there_and_unknown() -> None:
    picture = pictured("  - {step: a, next: nowhere, compensate: neither}\n")
    assert [(found.name, found.known) for found in picture.vertices] == [
        ("a", True),
        ("nowhere", False),
        ("neither", False),
    ]
    assert [(link.target, link.kind) for link in picture.links] == [(1, "arc"), (2, "compensate")]


def test_unreachable_steps_are_marked_and_compensations_are_not() -> None:
    picture = pictured("""
  - {step: a, tool: {kind: noop}, compensate: undo}
  - {step: undo, tool: {kind: noop}}
  - {step: lost, tool: {kind: noop}}
""")
    assert [found.reachable for found in picture.vertices] == [True, True, False]
    assert vertex(picture, "undo").undoes == ("a",)


def joins(picture: Picture) -> set[str]:
    return {found.name for found in picture.vertices if found.join}


def test_branches_of_a_fork_meet_at_a_join() -> None:
    picture = pictured("""
  - {step: split, next: [left, right]}
  - {step: left, next: meet}
  - {step: right, next: meet}
  - {step: meet, next: {arcs: [{step: x, when: "{{ ctx.x }}"}, {step: y}]}}
  - {step: x, next: end}
  - {step: y, next: end}
  - {step: end}
""")
    assert joins(picture) == {"meet"}


def test_a_branch_that_leads_straight_to_the_join_counts() -> None:
    picture = pictured("""
  - {step: split, next: [work, meet]}
  - {step: work, next: meet}
  - {step: meet}
""")
    assert joins(picture) == {"meet"}


def test_alternatives_never_join() -> None:
    picture = pictured("""
  - {step: choose, next: [{step: left, when: "{{ ctx.x }}"}, {step: right}]}
  - {step: left, next: meet}
  - {step: right, next: meet}
  - {step: meet}
""")
    assert joins(picture) == set()


def test_a_fork_inside_a_cycle_has_its_join() -> None:
    picture = pictured("""
  - {step: split, next: [left, right]}
  - {step: left, next: meet}
  - {step: right, next: meet}
  - {step: meet, next: {arcs: [{step: split, when: "{{ ctx.again }}"}]}}
""")
    assert joins(picture) == {"meet"}
    assert [[picture.vertices[number].name for number in group] for group in picture.cycles] == [
        ["split", "left", "right", "meet"]
    ]


def test_of_two_steps_with_one_name_the_first_is_drawn() -> None:
    picture = pictured("  - {step: a, tool: {kind: http}}\n  - {step: a, tool: {kind: python}}\n")
    assert [found.kinds for found in picture.vertices] == [("http",)]
