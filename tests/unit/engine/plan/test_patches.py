"""Patches of a replay: over what the playbook says, before anything is rendered."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.dsl.tree.playbook import Step, Value
from noetl.engine.plan.patches import check, patched, patched_calls, patched_items, patched_value
from noetl.model.errors import InvalidInput
from noetl.testing.play import read
from noetl.tools import kinds
from tests.unit.engine.given import book

TEXT = book(
    """  - step: one
    input: {n: 1, deep: {a: 1}}
    tool:
      - get: {kind: http, url: "http://old/{{ n }}", headers: {A: 1}, params: "{{ p }}", input: {own: 1}}
      - put: {kind: noop}"""
)


def step() -> Step:
    return read(TEXT).workflow[0]


def made(**values: Any) -> Step:
    named = {path.replace("__", "."): value for path, value in values.items()}
    return patched(step(), {"task": "get", "values": named}, kinds())


def test_a_field_of_the_task_that_failed_is_replaced() -> None:
    found = made(spec__url="http://new/{{ n }}", spec__headers__B=2).tasks[0]
    assert found.fields["url"] == Value("http://new/{{ n }}")
    assert found.fields["headers"] == Value({"A": 1, "B": 2})
    assert made(spec__url="x").tasks[1] == step().tasks[1]


def test_a_field_that_the_task_had_not_and_its_settings() -> None:
    found = made(spec__body={"x": 1}, spec__timeout_ms=5, spec__auth="other").tasks[0]
    assert found.fields["body"] == Value({"x": 1})
    assert (found.timeout_ms, found.auth) == (Value(5), Value("other"))


def test_input_args_and_items() -> None:
    assert made(input__n=2, input__deep__b=3).input == {"n": Value(2), "deep": Value({"a": 1, "b": 3})}
    assert made(input__own=2).tasks[0].input == {"own": Value(2)}
    assert patched_value({"a": 1}, {"args.b": 2, "item.c": 3}, "args") == {"a": 1, "b": 2}
    assert patched_items([{"id": 1}], {"task": "t", "values": {"item.url": "x"}}) == [{"id": 1, "url": "x"}]
    assert patched_items([5], {"task": "t", "values": {"item": 6}}) == [6]
    assert patched_items([[1, 2]], {"task": "t", "values": {"item.1": 9}}) == [[1, 9]]
    assert patched_items([5], None) == [5]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("url", "begins with spec"),
        ("spec", "begins with spec"),
        ("spec..x", "begins with spec"),
        ("spec.headers.Authorization", "Keep it as a credential"),
        ("item.x", "failed outside of a loop"),
        ("spec.params.x", "patch `params` as a whole"),
        ("input.n.x", "patch `n` as a whole"),
        ("spec.ulr", "kind `http` has no field `ulr`. Did you mean 'url'?"),
        ("args.own", "patched as `input.own`"),
        ("args.deep.a", "patched as `input.deep.a`"),
    ],
)
def test_a_patch_that_cannot_be_used_is_refused(path: str, says: str) -> None:
    with pytest.raises(InvalidInput, match="patch") as caught:
        check(read(TEXT), step(), "get", {path: 1}, kinds(), args={"bound": 1}, is_item=False)
    assert says in str(caught.value)


def test_a_patch_that_can_be_used() -> None:
    fine = {"spec.url": "x", "spec.timeout_ms": 5, "input.new.deep": 1, "args.a": 1, "args.n": 1, "item.x": 2}
    check(read(TEXT), step(), "get", fine, kinds(), args={"n": 1}, is_item=True)
    with pytest.raises(InvalidInput, match="is not a task of step"):
        check(read(TEXT), step(), "call/inner", {"spec.url": "x"}, kinds(), args={}, is_item=False)


CALLS = (
    book(
        """  - step: one
    tool:
      - first: {kind: workbook, task: fetch}
      - second: {kind: workbook, task: outer, timeout_ms: 50}"""
    )
    + """
workbook:
  - {name: outer, kind: workbook, task: fetch}
  - {name: fetch, kind: http, url: "http://old", headers: {A: 1}}
"""
)


def test_a_patch_of_a_workbook_call_reaches_the_task_that_was_called_and_no_other_call_of_it() -> None:
    playbook = read(CALLS)
    [one] = playbook.workflow
    given: dict[str, Any] = {
        "task": "second",
        "values": {"spec.url": "http://new", "spec.headers.B": 2, "spec.timeout_ms": 90},
    }
    check(playbook, one, "second", given["values"], kinds(), args={}, is_item=False)
    [(place, task)] = patched_calls(playbook, one, given, kinds()).items()
    assert (place, task.label, task.timeout_ms) == ("second/outer/", "fetch", Value(90))
    assert (task.fields["url"], task.fields["headers"]) == (Value("http://new"), Value({"A": 1, "B": 2}))
    made = patched(one, given, kinds())
    assert (made.tasks[0], made.tasks[1].timeout_ms) == (one.tasks[0], Value(90))
    assert "url" not in made.tasks[1].fields
    with pytest.raises(InvalidInput, match="patch `url` as a whole"):
        check(playbook, one, "second", {"spec.url.x": 1}, kinds(), args={}, is_item=False)


def test_a_patch_of_a_workbook_call_may_name_another_task() -> None:
    given = {"task": "second", "values": {"spec.task": "fetch", "spec.url": "http://new"}}
    playbook = read(CALLS)
    made = patched(playbook.workflow[0], given, kinds())
    assert made.tasks[1].fields["task"] == Value("fetch")
    assert list(patched_calls(playbook, made, given, kinds())) == ["second/"]


def test_workbook_tasks_that_call_each_other_for_ever_are_no_place_for_a_patch() -> None:
    round_and_round = CALLS.replace('kind: http, url: "http://old", headers: {A: 1}', "kind: workbook, task: outer")
    playbook = read(round_and_round)
    with pytest.raises(InvalidInput, match="kind `workbook` has no field `url`"):
        check(playbook, playbook.workflow[0], "first", {"spec.url": 1}, kinds(), args={}, is_item=False)


def test_a_plain_task_has_no_patched_call() -> None:
    assert patched_calls(read(TEXT), step(), {"task": "get", "values": {"spec.url": "x"}}, kinds()) == {}
