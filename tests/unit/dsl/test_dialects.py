"""Older forms: each is recognised, and ignored in data."""

from __future__ import annotations

import pytest

from noetl.dsl.checking.shape import ShapeFinding, findings
from noetl.dsl.dialects import FIRST_FORMS, FORMS, SECOND_FORMS, LegacyForm
from noetl.dsl.dialects.other_tools import FOREIGN_KEYS, ForeignKey
from noetl.dsl.grammar import LEVELS
from noetl.dsl.reading.parse import parse
from tests.unit.dsl.rules.samples import HEAD, KINDS, codes, indented, with_rules, with_step

ALL = (*FIRST_FORMS, *SECOND_FORMS)
VALUES = {"": "something", "scalar": "something", "map": "{ a: 1 }", "list": "[1]"}
STEP = "workflow:\n  - step: work\n    tool: { kind: noop }\n"


def by_place(form: LegacyForm) -> str:
    return f"{form.dialect}-{form.level}-{form.key}" + "".join(f"={value}" for value in form.values)


def written(form: LegacyForm) -> str:
    """Write a playbook that has this form and no other mistake."""
    value = form.values[0] if form.values else VALUES[form.shape]
    line = f"{form.key}: {value}"
    match form.level:
        case "playbook":
            return HEAD + line + "\n" + (STEP if form.replaces != "workflow" else "")
        case "step":
            name = "" if form.replaces == "step" else "step: work\n"
            tool = "" if form.replaces == "tool" else "tool: { kind: noop }\n"
            return HEAD + "workflow:\n  -\n" + indented(name + tool + line, 4)
        case "task":
            kind = "" if form.replaces == "kind" else "kind: http\nurl: https://example.org\n"
            return with_step("tool:\n" + indented(kind + line, 2))
        case "loop":
            items = "" if form.replaces == "in" else "in: [1]\n"
            return with_step("tool: { kind: noop }\nloop:\n" + indented(items + line, 2))
        case "arc":
            target = "" if form.replaces == "step" else "step: work\n"
            return with_step(
                "tool: { kind: noop }\nnext:\n  -\n" + indented(target + 'when: "{{ ctx.a | default(1) }}"\n' + line, 4)
            )
        case "task_rule":
            return with_rules("-\n" + indented("then: { do: continue }\n" + line, 2))
    raise AssertionError(form.level)


def found_in(text: str) -> tuple[ShapeFinding, ...]:
    return findings(parse(text).root, KINDS)


@pytest.mark.parametrize("form", ALL, ids=by_place)
def test_a_form_stands_at_a_level_that_does_not_have_its_key(form: LegacyForm) -> None:
    assert LEVELS[form.level].field(form.key) is None
    assert not form.replaces or LEVELS[form.level].field(form.replaces) is not None
    assert not form.below or form.below in LEVELS
    assert form.meant
    assert "`" in form.canonical


@pytest.mark.parametrize("form", ALL, ids=by_place)
def test_a_form_is_recognised_and_told_once(form: LegacyForm) -> None:
    text = written(form)
    assert [(finding.kind, finding.form) for finding in found_in(text)] == [("legacy", form)]
    assert len([code for code in codes(text) if code.startswith("NOE8")]) == 1


def test_of_two_forms_of_one_key_the_narrower_comes_first() -> None:
    for forms in FORMS.values():
        open_ones = [number for number, form in enumerate(forms) if not form.values and not form.shape]
        assert open_ones in ([], [len(forms) - 1])


@pytest.mark.parametrize(
    "text",
    [
        with_step("tool: { kind: noop, result: { as: a, sink: b } }"),
        with_step("tool: { kind: noop, spec: { result: { store: file } } }"),
        with_step("input: { type: a, vars: b, sink: c, retry: d }\ntool: { kind: noop }"),
        with_step("tool: { kind: noop }\nset: { type: a, vars.pass: b, case: c }"),
        with_step("tool:\n  - sink: { kind: noop }\n  - retry: { kind: noop }\n  - vars: { kind: noop }"),
        with_step("tool: { kind: playbook, path: a/b, input: { steps: [], action: b } }"),
        HEAD + "workload: { steps: [a], type: b }\n" + STEP,
    ],
)
def test_data_and_native_keys_are_no_older_forms(text: str) -> None:
    assert found_in(text) == ()


def test_all_keys_of_an_absorbing_form_are_one_mistake() -> None:
    text = HEAD + (
        "workflow:\n  - step: work\n    type: http\n    method: GET\n    url: https://example.org\n    anything: 1\n"
        "    timeout_s: 3\n"
    )
    assert [finding.name for finding in found_in(text)] == ["type"]


def test_inside_an_older_list_of_steps_only_older_forms_are_told() -> None:
    text = HEAD + "steps:\n  - name: a\n    type: http\n    ulr: b\n  - name: b\n    tool: { knid: noop }\n"
    assert [finding.name for finding in found_in(text)] == ["steps", "name", "type", "name"]


def test_an_action_beside_a_kind_is_an_unknown_field_of_that_kind() -> None:
    (finding,) = found_in(with_step("tool: { kind: nats, operation: publish, subject: a, action: b }"))
    assert (finding.kind, finding.name) == ("unknown-key", "action")
    (finding,) = found_in(with_step("tool: { action: http, url: a }"))
    assert (finding.kind, finding.name) == ("legacy", "action")


@pytest.mark.parametrize("key", FOREIGN_KEYS, ids=lambda key: f"{key.level}.{key.key}")
def test_a_key_of_another_tool_is_never_legal_here(key: ForeignKey) -> None:
    assert LEVELS[key.level].field(key.key) is None
    assert (key.level, key.key) not in FORMS
    if key.replaces and key.level != "task":
        assert LEVELS[key.level].field(key.replaces)


def test_each_key_of_another_tool_stands_once() -> None:
    places = [(key.level, key.key) for key in FOREIGN_KEYS]
    assert len(set(places)) == len(places)
