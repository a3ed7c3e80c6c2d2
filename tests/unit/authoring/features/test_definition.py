"""From a mention to where the thing comes from, and to all of its mentions."""

from __future__ import annotations

import pytest

from noetl.authoring.features.definition import definitions, references
from tests.unit.authoring.editing import HEAD, typed

STEP = f"{HEAD}  - step: store\n"


def defined(text: str) -> list[str]:
    reading, offset = typed(text)
    lines = reading.exact.source
    return [f"{lines.position(start).line}:{reading.text[start:end]}" for start, end in definitions(reading, offset)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    next: fet‸ch\n", ["8:fetch"]),
        ("    next: { arcs: [ { step: ‸fetch } ] }\n", ["8:fetch"]),
        ("    compensate: fetch‸\n", ["8:fetch"]),
        ('    tool: { kind: noop, result: "{{ fe‸tch.results }}" }\n', ["8:fetch"]),
        ("    tool: { kind: noop, result: \"{{ done('fe‸tch') }}\" }\n", ["8:fetch"]),
        ('    tool: { kind: noop, result: "{{ workload.ci‸ties }}" }\n', ["5:cities"]),
        ('    tool: { kind: noop, result: "{{ ci‸ties }}" }\n', ["5:cities"]),
        ('    tool: { kind: noop, result: "{{ ctx.to‸tal }}", set: { ctx.total: 2 } }\n', ["15:total", "18:total"]),
        ('    tool: { kind: noop, result: "{{ args.ro‸ws }}" }\n', ["16:rows"]),
        ("    tool: { kind: postgres, auth: pg‸_main, query: x }\n", ["4:pg_main"]),
        ("    tool: { kind: workbook, task: ti‸dy }\n", ["6:tidy"]),
        ("    tool: [ { name: tid‸y, kind: workbook } ]\n", ["6:tidy"]),
        ('    tool: [ { name: a, kind: noop }, { name: b, kind: noop, result: "{{ a‸ }}" } ]\n', ["18:a"]),
        ('    spec: { on_step_fail: "route_edge:on‸ward" }\n', ["16:onward"]),
        ('    tool: { kind: noop, result: "{{ nobo‸dy }}" }\n', []),
        ("    de‸sc: nothing to go to\n", []),
    ],
)
def test_definitions(text: str, expected: list[str]) -> None:
    assert defined(STEP + text) == expected


def test_a_jump_goes_to_its_task_by_label_and_by_previous() -> None:
    for word in ("a", "previous"):
        rule = f"spec: {{ policy: {{ rules: [ {{ else: {{ then: {{ do: jump, to: ‸{word} }} }} }} ] }} }}"
        assert defined(f"{STEP}    tool:\n      - a: {{ kind: noop }}\n      - b: {{ kind: noop, {rule} }}\n") == [
            "19:a"
        ]


def test_an_iterator_goes_to_its_loop() -> None:
    assert defined(HEAD.replace("iter.city", "iter.ci‸ty")) == ["9:city"]


def test_a_document_that_cannot_be_parsed_has_definitions_too() -> None:
    assert defined(f'{STEP}    next: fet‸ch\n    tool: {{ kind: noop, result: "{{{{ oh\n') == ["8:fetch"]


def test_references_come_with_or_without_the_definition() -> None:
    reading, offset = typed(f"{STEP}    next: fet‸ch\n")
    both, uses = references(reading, offset), references(reading, offset, definitions_too=False)
    assert len(both) == len(uses) + 1 == 3
    assert set(uses) < set(both)
    assert references(reading, 0) == ()
