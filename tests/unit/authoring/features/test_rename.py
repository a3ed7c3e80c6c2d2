"""Rename: complete, exact, and refused if it would do harm."""

from __future__ import annotations

import re

import pytest

from noetl.authoring.analysis.occurrences import occurrences
from noetl.authoring.analysis.reading import Reading
from noetl.authoring.features.rename import RefusedRename, apply_edits, rename, target
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.wiring.embedded import language_kinds
from tests.unit.authoring.editing import HEAD, good, typed

NEW = "a_new_name"
STEP = f"{HEAD}  - step: store\n"


def renamed(text: str, name: str = NEW) -> str:
    reading, offset = typed(text)
    return apply_edits(reading.text, rename(reading, offset, name))


def refusal(text: str, name: str = NEW) -> str:
    reading, offset = typed(text)
    with pytest.raises(RefusedRename) as refused:
        rename(reading, offset, name)
    return str(refused.value)


@pytest.mark.parametrize("number", range(len(good())), ids=[name for name, _ in good()])
def test_every_step_of_a_good_playbook_can_be_renamed_and_back(number: int) -> None:
    reading = good()[number][1]
    for step in reading.subject.playbook.workflow:
        assert step.name_at is not None
        there = reading.with_text(apply_edits(reading.text, rename(reading, step.name_at.start + 1, NEW)))
        assert there.diagnostics == ()
        assert there.subject.playbook != reading.subject.playbook
        assert NEW in there.subject.names.steps
        assert step.name not in there.subject.names.steps
        back = there.subject.playbook.step(NEW)
        assert back is not None
        assert back.name_at is not None
        again = apply_edits(there.text, rename(there, back.name_at.start + 1, step.name))
        assert again == reading.text
        assert normalize(parse(again)) == reading.subject.playbook


def test_tasks_and_iterators_of_good_playbooks_can_be_renamed_and_back() -> None:
    done = 0
    reasons: list[str] = []
    for _, reading in good():
        for one in occurrences(reading.subject):
            if one.thing.kind not in ("task", "iterator") or not one.defines or not one.spelled:
                continue
            try:
                edits = rename(reading, one.start, NEW)
            except RefusedRename as reason:
                reasons.append(str(reason))
                continue
            there = reading.with_text(apply_edits(reading.text, edits))
            assert there.diagnostics == ()
            assert apply_edits(there.text, rename(there, edits[0].start, one.thing.name)) == reading.text
            done += 1
    assert done > 100
    assert len(reasons) < done / 20
    assert all(re.search("also names|Python code", reason) for reason in reasons)


def test_a_step_is_renamed_in_arcs_settings_templates_and_functions() -> None:
    text = (
        f"{STEP.replace('step: store', 'step: st‸ore')}"
        "    tool: { kind: noop, result: \"{{ done('store') or ok('store') }} store {{ 'store' }}\" }\n"
        '    next: { arcs: [ { step: "store", when: "{{ store.n > 1 and fetch[\'store\'] is undefined }}" } ] }\n'
        "executor: { spec: { final_step: fetch, entry_step: store } }\n"
    )
    assert renamed(text) == text.replace("‸", "").replace("step: store", f"step: {NEW}").replace(
        "('store')", f"('{NEW}')"
    ).replace('step: "store"', f'step: "{NEW}"').replace("store.n", f"{NEW}.n").replace(
        "entry_step: store", f"entry_step: {NEW}"
    )


def test_a_label_that_was_made_from_the_steps_name_follows_it() -> None:
    text = f'{STEP.replace("step: store", "step: st‸ore")}    tool: {{ kind: noop }}\n    next: [ {{ step: last, when: "{{{{ store.results.store_task }}}}" }} ]\n  - step: last\n    tool: {{ kind: noop }}\n'
    assert f"{{{{ {NEW}.results.{NEW}_task }}}}" in renamed(text)


def test_an_alias_follows_its_anchor() -> None:
    text = f"{STEP.replace('step: store', 'step: &here st‸ore')}    tool: {{ kind: noop }}\nexecutor: {{ spec: {{ final_step: *here }} }}\n"
    assert renamed(text).count(NEW) == 2
    assert "final_step: *here" in renamed(text)


def test_columns_behind_an_emoji_and_all_scalar_styles_are_exact() -> None:
    text = (
        f"{STEP.replace('step: store', 'step: st‸ore')}    tool: {{ kind: noop }}\n    next: last\n"
        "  - step: last\n    tool:\n      kind: noop\n      result:\n"
        "        a: '😀 it''s {{ store.x }}'\n"
        '        b: "\\U0001F600 \\"{{ store.x }}\\""\n'
        "        c: >-\n          😀\n          {{ store.x\n             ~ store.y }}\n"
        "        d: |\n          😀 {{ store.x }}\n"
        "        e: 😀 {{ store.x }}\n"
    )
    after = renamed(text)
    assert "{{ store" not in after
    assert after.count(f"{NEW}.x") == 5
    assert f"~ {NEW}.y" in after


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fetch", "A step named 'fetch' already exists"),
        ("two words", "is not a valid name"),
        ("with-dash", "is not a valid name"),
        ("1st", "is not a valid name"),
        ("", "is not a valid name"),
        ("ctx", "is a reserved name of the language"),
        ("workload", "is a reserved name of the language"),
        ("true", "has another meaning"),
        ("yes", "has another meaning"),
        ("not", "has another meaning"),
    ],
)
def test_names_that_cannot_be(name: str, reason: str) -> None:
    assert reason in refusal(f"{STEP.replace('step: store', 'step: st‸ore')}    tool: {{ kind: noop }}\n", name)


def test_a_name_that_would_change_what_templates_read_is_refused() -> None:
    body = '    tool: { kind: noop, result: "{{ url }}" }\n'
    assert "would read other data" in refusal(f"{STEP.replace('step: store', 'step: st‸ore')}{body}", "url")
    captured = '    tool: { kind: noop, result: "{% for x in [1] %}{{ fetch.stats }}{{ x }}{% endfor %}" }\n'
    assert "would read other data" in refusal(f"{STEP.replace('step: fetch', 'step: fe‸tch')}{captured}", "x")


def test_a_name_that_would_bring_a_diagnostic_is_refused() -> None:
    body = "    tool: { kind: noop }\n"
    assert "new diagnostic" in refusal(
        f"{HEAD.replace('iterator: city', 'iterator: ci‸ty')}  - step: store\n{body}", "get"
    )


def test_what_is_ambiguous_is_refused() -> None:
    twice = f"{STEP.replace('step: store', 'step: st‸ore')}    tool: {{ kind: noop }}\n  - step: store\n    tool: {{ kind: noop }}\n"
    assert "There are 2 steps named 'store'" in refusal(twice)
    both = f"{STEP}    tool: [ {{ name: ti‸dy, kind: workbook }} ]\n"
    assert "also names a task of the workbook" in refusal(both)
    code = f'{STEP}    loop: {{ in: [1], iterator: ro‸w }}\n    tool: {{ kind: python, code: "result = row + 1" }}\n'
    assert "Python code on line 19 uses 'row'" in refusal(code)
    escaped = f'{STEP.replace("step: store", "step: st‸ore")}    tool: {{ kind: noop }}\nexecutor: {{ spec: {{ final_step: "s\\x74ore" }} }}\n'
    assert "written with escapes" in refusal(escaped)


def test_a_document_that_cannot_be_read_is_left_alone() -> None:
    assert "has syntax errors" in refusal(f"{STEP.replace('step: store', 'step: st‸ore')}    tool: {{ kind: noop\n")


def test_nothing_to_rename() -> None:
    reading, offset = typed(f"{STEP}    de‸sc: x\n")
    assert target(reading, offset) is None
    assert "Nothing to rename here" in refusal(f"{STEP}    de‸sc: x\n")
    unknown = f"{STEP}    next: no‸where\n"
    assert "has no definition" in refusal(unknown)
    reading, offset = typed(f"{STEP.replace('step: store', 'step: st‸ore')}    tool: {{ kind: noop }}\n")
    assert rename(reading, offset, "store") == ()


def test_what_would_be_renamed_is_told_before() -> None:
    reading, offset = typed(f"{STEP}    next: fe‸tch\n")
    found = target(reading, offset)
    assert found is not None
    assert reading.text[found.start : found.end] == found.thing.name == "fetch"


def test_a_rename_may_put_something_right() -> None:
    text = f"{STEP.replace('step: store', 'step: the-st‸ore')}    tool: {{ kind: noop }}\n".replace(
        "step: store, label", "step: the-store, label"
    )
    reading, offset = typed(text)
    before = reading.diagnostics
    after = Reading(apply_edits(reading.text, rename(reading, offset, NEW)), "after.yaml", language_kinds()).diagnostics
    assert len(after) < len(before)
