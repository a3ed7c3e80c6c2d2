"""Which steps may have ended when a step runs: along arcs, behind gates, at end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.analysis.net import build
from noetl.dsl.analysis.step_order import ended_before
from noetl.dsl.tree.playbook import Arc, Assign, Executor, Playbook, Router, Step, Value

Arcs = Mapping[str, Iterable[str]]


def playbook(arcs: Arcs, final: str | None = None, undone_by: Mapping[str, str] | None = None) -> Playbook:
    steps = tuple(
        Step(
            name,
            router=Router(tuple(Arc(target) for target in targets)),
            sets=(Assign("ctx", f"{name}_done", Value(True)),),
            compensate=(undone_by or {}).get(name),
        )
        for name, targets in arcs.items()
    )
    executor = Executor(spec={"final_step": Value(final)} if final else {})
    return Playbook("test", "test", steps, executor=executor)


def before(source: Playbook, gates: Mapping[str, Iterable[str]] | None = None) -> dict[str, set[str]]:
    net = build(source)
    found = ended_before(net, gates or {})
    return {step.name: {other.name for other in net.members(found[net.index[step.name]])} for step in net.steps}


def test_what_stands_on_a_path_has_ended() -> None:
    assert before(playbook({"a": "b", "b": "c", "c": ""})) == {"a": set(), "b": {"a"}, "c": {"a", "b"}}


def test_branches_do_not_wait_for_each_other() -> None:
    found = before(playbook({"a": "bc", "b": "d", "c": "d", "d": ""}))
    assert found["b"] == {"a"}
    assert found["c"] == {"a"}
    assert found["d"] == {"a", "b", "c"}


def test_in_a_cycle_everything_may_have_ended() -> None:
    found = before(playbook({"a": "b", "b": "ac", "c": ""}))
    assert found["a"] == {"a", "b"}
    assert found["b"] == {"a", "b"}


def test_a_gate_waits_for_a_step_and_for_what_came_before_it() -> None:
    arcs = {"s": "ax", "a": "b", "b": "", "x": "y", "y": ""}
    assert before(playbook(arcs))["y"] == {"s", "x"}
    assert before(playbook(arcs), {"x": ["b"]})["y"] == {"s", "x", "a", "b"}


def test_a_gate_on_state_waits_for_the_steps_that_write_it() -> None:
    arcs = {"s": "ax", "a": "", "x": ""}
    assert before(playbook(arcs), {"x": ["a_done"]})["x"] == {"s", "a"}
    assert before(playbook(arcs), {"x": ["x_done", "nobody_writes_this"]})["x"] == {"s"}


def test_the_final_step_and_compensations_come_last() -> None:
    found = before(playbook({"a": "b", "b": "", "undo": "", "end": ""}, "end", {"a": "undo"}))
    assert found["end"] == found["undo"] == {"a", "b", "undo", "end"}


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef")), min_size=1))
def test_along_arcs_it_is_reachability(arcs: dict[str, set[str]]) -> None:
    source = playbook(arcs)
    net = build(source)
    found = before(source)
    for target in net.steps:
        reaching = {step.name for step in net.steps if net.reaches(net.index[step.name], net.index[target.name])}
        assert found[target.name] == reaching
