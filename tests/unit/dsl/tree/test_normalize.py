"""The canonical tree: one meaning per shorthand, and a lossless round trip."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given

from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.canonical import canonical
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.playbook import Playbook, Step, Task
from tests.corpus.corpus import files
from tests.unit.dsl.playbooks import playbooks, written


def read(text: str) -> Playbook:
    return normalize(parse(text))


def step_of(body: str) -> Step:
    """Read a workflow of one step, given as the lines below `- step: a`."""
    return read("workflow:\n  - step: a\n" + "".join(f"    {line}\n" for line in body.splitlines())).workflow[0]


def task_of(body: str) -> Task:
    return step_of("tool:\n" + "".join(f"  {line}\n" for line in body.splitlines())).tasks[0]


@given(playbooks())
def test_the_two_native_spellings_of_one_playbook_are_equal_trees(meaning: dict[str, Any]) -> None:
    assert read(written(meaning, "v10")) == read(written(meaning, "io"))


@given(playbooks())
def test_normalizing_is_idempotent(meaning: dict[str, Any]) -> None:
    tree = read(written(meaning, "io"))
    assert read(yaml.safe_dump(canonical(tree), sort_keys=False)) == tree


@pytest.mark.parametrize("path", files("good"), ids=lambda path: path.stem)
def test_normalizing_a_good_playbook_is_idempotent(path: Any) -> None:
    tree = normalize(parse(path.read_bytes()))
    assert read(yaml.safe_dump(canonical(tree), sort_keys=False, allow_unicode=True)) == tree


@pytest.mark.parametrize(
    ("form", "label"),
    [
        ("tool: { kind: noop }", "a_task"), ("tool:\n  - name: n\n    kind: noop", "n"),
        ("tool:\n  - n: { kind: noop }", "n"), ("tool:\n  - kind: noop", "task_0"),
        ("tool:\n  n: { kind: noop }", "n"),
    ],
)  # fmt: skip
def test_every_form_of_a_task_has_its_label(form: str, label: str) -> None:
    (task,) = step_of(form).tasks
    assert (task.label, task.kind) == (label, "noop")


@pytest.mark.parametrize(
    ("form", "mode", "targets"),
    [
        ("next: b", "exclusive", ["b"]),
        ("next: [b]", "exclusive", ["b"]),
        ("next: [b, c]", "inclusive", ["b", "c"]),
        ("next: [{ step: b }, { step: c }]", "exclusive", ["b", "c"]),
        ("next: { arcs: [{ step: b }] }", "exclusive", ["b"]),
        ("next: { spec: { mode: inclusive }, arcs: [{ step: b }, { step: c }] }", "inclusive", ["b", "c"]),
    ],
)
def test_every_form_of_next_is_a_router(form: str, mode: str, targets: list[str]) -> None:
    router = step_of(form).router
    assert router is not None
    assert (router.mode, [arc.step for arc in router.arcs]) == (mode, targets)


@pytest.mark.parametrize(
    "shape",
    [
        "else: { then: { do: fail } }", "else: { do: fail }", "{ else: , then: { do: fail } }",
        "{ else: true, then: { do: fail } }",
    ],
)  # fmt: skip
def test_every_shape_of_else_is_the_same_rule(shape: str) -> None:
    task = task_of(f"kind: noop\nspec:\n  policy:\n    rules:\n      - {shape}")
    assert task.rules is not None
    assert [(rule.is_else, rule.then.do) for rule in task.rules] == [(True, "fail")]


def test_a_condition_that_is_true_matches_always_and_is_no_else() -> None:
    task = task_of("kind: noop\nspec: { policy: { rules: [{ when: true, then: { do: skip } }] } }")
    assert task.rules is not None
    when = task.rules[0].when
    assert when is not None
    assert when.data is True


def test_fields_under_spec_are_promoted_only_where_they_are_missing() -> None:
    task = task_of("kind: http\nurl: here\nspec: { url: there, method: POST, priority: 3 }")
    assert {name: value.data for name, value in task.fields.items()} == {"url": "here", "method": "POST"}
    assert {name: value.data for name, value in task.spec.items()} == {"priority": 3}


@pytest.mark.parametrize(
    ("written_as", "target", "scope"),
    [("ctx.x", "ctx.x", "ctx"), ("iter.x", "iter.x", "iter"), ("step.x", "step.x", "step"), ("x", "ctx.x", "ctx"),
     ("vars.x", "ctx.x", "ctx"), ("a.b", "ctx.a.b", "ctx")],
)  # fmt: skip
def test_a_write_knows_its_scope(written_as: str, target: str, scope: str) -> None:
    (assign,) = step_of(f"next: b\nset: {{ {written_as}: 1 }}").sets
    assert (assign.target, assign.scope, assign.value.data) == (target, scope, 1)


def test_writes_may_be_nested_below_their_scope() -> None:
    assert step_of("next: b\nset: { ctx: { x: 1, y: 2 } }").sets == step_of("next: b\nset: { ctx.x: 1, ctx.y: 2 }").sets


def test_the_envelope_has_one_name_and_results_in_task_writes_keep_theirs() -> None:
    arc = step_of('next: [{ step: b, when: "{{ output.data.n > 1 and vars.on }}" }]').arcs[0]
    assert arc.when is not None
    assert arc.when.data == "{{ outcome.result.n > 1 and ctx.on }}"
    (assign,) = task_of('kind: http\nurl: u\nset: { ctx.n: "{{ output.data.n }}" }').sets
    assert assign.value.data == "{{ output.data.n }}"


def test_a_text_that_only_looks_like_a_name_is_left_alone() -> None:
    arc = step_of("""next: [{ step: b, when: "{{ ctx.output.data == 'output.data' }}" }]""").arcs[0]
    assert arc.when is not None
    assert arc.when.data == "{{ ctx.output.data == 'output.data' }}"


@pytest.mark.parametrize("form", ["[{ name: w, kind: noop }]", "{ w: { kind: noop } }", "[{ w: { kind: noop } }]",
                                  "[{ name: w, tool: { kind: noop } }]", "{ w: { tool: { kind: noop } } }"])  # fmt: skip
def test_a_workbook_is_a_list_or_a_map(form: str) -> None:
    assert [(task.label, task.kind) for task in read(f"workbook: {form}").workbook] == [("w", "noop")]


@pytest.mark.parametrize("form", ["[{ name: k, credential: c }]", "{ k: c }", "{ k: { credential: c } }"])
def test_a_keychain_is_a_list_or_a_map(form: str) -> None:
    (entry,) = read(f"keychain: {form}").keychain
    assert (entry.name, entry.fields["credential"].data) == ("k", "c")


def test_seconds_become_milliseconds_also_in_templates() -> None:
    assert (
        task_of("kind: http\nurl: u\ntimeout: 1.5").timeout_ms
        == task_of("kind: http\nurl: u\ntimeout_ms: 1500").timeout_ms
    )
    value = task_of('kind: http\nurl: u\ntimeout_seconds: "{{ workload.t }}"').timeout_ms
    assert value is not None
    assert value.data == "{{ (workload.t) * 1000 }}"


def test_a_time_without_end_stays_one() -> None:
    found = task_of("kind: http\nurl: u\ntimeout: 1e400").timeout_ms
    assert found is not None
    assert found.data == float("inf")


def test_output_and_spec_result_are_one_setting() -> None:
    io = task_of("kind: http\nurl: u\noutput: { output_select: [{ path: $.n, as: n }], store: { kind: file } }")
    v10 = task_of("kind: http\nurl: u\nspec: { result: { select: [{ path: $.n, as: n }], store: { kind: file } } }")
    assert io.spec == v10.spec


def test_nonsense_is_left_out_and_never_raises() -> None:
    tree = read(
        "workflow: [1, {step: null}, {step: a, tool: [x, 3], next: [[1]], loop: 5, set: 7, spec: []}]\nworkbook: 3"
    )
    assert [step.name for step in tree.workflow] == ["a"]
    assert tree.workbook == ()
