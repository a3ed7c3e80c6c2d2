"""Dry runs: the steps, the known inputs, and what stays open."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.plan.plan import plan
from noetl.engine.queries.dry_run import Foreseen, foresee
from noetl.testing.play import read

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\n"


def route(workflow: str, head: str = "", **workload: Any) -> dict[str, Foreseen]:
    made = plan(read(HEAD + head + "workflow:\n" + workflow), "hash")
    return {one.step: one for one in foresee(made, workload)}


def inputs(step: Foreseen) -> dict[str, tuple[Any, bool]]:
    return {one.name: (one.value, one.known) for one in step.tasks[0].inputs}


def test_inputs_of_the_workload_are_known_and_others_stand_as_written() -> None:
    found = route(
        "- step: a\n  tool: {kind: noop, result: {n: '{{ workload.n + 1 }}', m: '{{ n }}', o: '{{ ctx.x }}', t: x}}\n",
        n=2,
    )
    assert inputs(found["a"]) == {"result": ({"n": 3, "m": 2, "o": "{{ ctx.x }}", "t": "x"}, False)}


def test_a_bare_name_that_something_else_may_hold_is_open() -> None:
    found = route("- step: a\n  tool: {kind: noop, result: '{{ n }}'}\n  set: {ctx.n: 1}\n", n=2)
    assert inputs(found["a"])["result"] == ("{{ n }}", False)


def test_a_missing_key_and_the_time_are_open() -> None:
    found = route("- step: a\n  tool: {kind: noop, result: ['{{ workload.missing }}', '{{ now() }}']}\n", n=2)
    assert inputs(found["a"])["result"] == (["{{ workload.missing }}", "{{ now() }}"], False)


@pytest.mark.parametrize(
    ("head", "task", "problem"),
    [
        ("", "kind: noop, result: 'a {{ workload.missing }} b'", "`workload.missing` is undefined"),
        ("", "kind: noop, result: ['{{ args.x }}']", "`args.x` is undefined"),
        ("", "kind: noop, result: '{{ workload.n / 0 }}'", "zero"),
        ("", "kind: noop, result: '{{ workload.missing | default(1) }} {{ n }}'", None),
        ("", "kind: noop, result: '{{ ctx.x }}'", None),
        ("", "kind: noop, input: {x: '{{ workload.missing }}'}", "`workload.missing` is undefined"),
        ("", "kind: python, code: 'print(\"{{ workload.missing }}\")'", None),
        ("executor: {spec: {strict_templates: false}}\n", "kind: noop, result: 'a {{ workload.missing }}'", None),
    ],
)
def test_what_cannot_be_rendered_whatever_runs_is_told(head: str, task: str, problem: str | None) -> None:
    (found,) = route(f"- step: a\n  tool: {{{task}}}\n", head, n=2)["a"].tasks[0].inputs[-1:]
    assert (found.problem is None) if problem is None else (problem in (found.problem or "") and not found.known)


def test_a_condition_on_the_workload_decides_the_route() -> None:
    workflow = (
        "- step: a\n  tool: {kind: noop}\n"
        "  next: [{step: b, when: '{{ workload.n > 5 }}'}, {step: c}]\n"
        "- step: b\n  tool: {kind: noop}\n- step: c\n  tool: {kind: noop}\n"
    )
    small, big = route(workflow, n=1), route(workflow, n=9)
    assert list(small) == ["a", "c"]
    assert [way.taken for way in small["a"].ways] == ["never", "taken"]
    assert list(big) == ["a", "b"]
    assert [way.taken for way in big["a"].ways] == ["taken", "never"]
    assert big["b"].sure


@pytest.mark.parametrize(
    ("router", "taken", "sure"),
    [
        ("[{step: b, when: '{{ a.n > 5 }}'}, {step: c}]", ["open", "open"], {"b": False, "c": False}),
        (
            "{spec: {mode: inclusive}, arcs: [{step: b, when: '{{ a.n }}'}, {step: c}]}",
            ["open", "taken"],
            {"b": False, "c": True},
        ),
        (
            "[{step: b, when: \"{{ event.name == 'step.failed' }}\"}, {step: c}]",
            ["on failure", "taken"],
            {"b": False, "c": True},
        ),
    ],
    ids=["a result is open", "inclusive takes all that match", "on failure"],
)
def test_ways_that_are_not_known_before_the_run(router: str, taken: list[str], sure: dict[str, bool]) -> None:
    leaves = "- step: b\n  tool: {kind: noop}\n- step: c\n  tool: {kind: noop}\n"
    found = route(f"- step: a\n  tool: {{kind: noop}}\n  next: {router}\n{leaves}")
    assert [way.taken for way in found["a"].ways] == taken
    assert {name: found[name].sure for name in "bc"} == sure


def test_arguments_are_known_where_one_arc_leads_to_the_step() -> None:
    workflow = (
        "- step: a\n  tool: {kind: noop}\n  next: [{step: b, args: {x: '{{ workload.n }}', y: '{{ a.z }}'}}]\n"
        "- step: b\n  tool: {kind: noop, result: ['{{ args.x }}', '{{ args.y }}']}\n"
    )
    found = route(workflow, n=4)
    assert inputs(found["b"])["result"] == (["{{ args.x }}", "{{ args.y }}"], False)
    only = workflow.replace(", y: '{{ a.z }}'", "").replace(", '{{ args.y }}'", "")
    assert inputs(route(only, n=4)["b"])["result"] == ([4], True)


def test_loops_gates_and_the_final_step() -> None:
    head = "executor: {spec: {final_step: z}}\n"
    workflow = (
        "- step: a\n  loop: {in: '{{ workload.list }}', iterator: i}\n  tool: {kind: noop}\n  next: b\n"
        "- step: b\n  spec: {policy: {admit: {rules: [{when: '{{ ctx.x }}', then: {allow: true}}]}}}\n  tool: {kind: noop}\n"
        "- step: z\n  tool: {kind: noop}\n"
    )
    found = route(workflow, head, list=[1, 2])
    assert list(found) == ["a", "b", "z"]
    assert found["a"].loop is not None
    assert (found["a"].loop.value, found["a"].loop.known) == ([1, 2], True)
    assert found["b"].gated


def test_a_cycle_is_told_once() -> None:
    workflow = (
        "- step: a\n  tool: {kind: noop}\n  next: b\n- step: b\n  tool: {kind: noop}\n"
        "  next: [{step: a, when: '{{ b.more }}'}]\n"
    )
    assert list(route(workflow)) == ["a", "b"]
