"""Every mention of what a playbook names, at its exact place."""

from __future__ import annotations

import pytest

from noetl.authoring.analysis.occurrences import Thing, occurrences
from noetl.authoring.analysis.reading import Reading
from noetl.wiring.embedded import language_kinds
from tests.unit.authoring.editing import HEAD, good

STEP = f"{HEAD}  - step: store\n"


def mentions(text: str, thing: Thing) -> list[tuple[str, bool]]:
    """Return the text of each mention with its line, marked if it defines."""
    reading = Reading(text, "text.yaml", language_kinds())
    found = (one for one in occurrences(reading.subject) if one.thing == thing)
    lines = reading.exact.source
    return [(f"{lines.position(one.start).line}:{text[one.start : one.end]}", one.defines) for one in found]


def test_a_step_is_named_by_arcs_settings_templates_and_functions() -> None:
    text = (
        f"{STEP}"
        "    tool: { kind: noop, result: \"{{ fetch.results if done('fetch') else fetch['stats'] }} fetch\" }\n"
        "    compensate: 'fetch'\n"
        '    next: [fetch, { step: "fetch" }]\n'
        "executor: { spec: { entry_step: fetch } }\n"
    )
    assert mentions(text, Thing("step", "fetch")) == [
        ("8:fetch", True),
        ("16:fetch", False),
        *[("18:fetch", False)] * 3,
        ("19:fetch", False),
        *[("20:fetch", False)] * 2,
        ("21:fetch", False),
    ]


def test_the_final_step_sees_results_by_the_names_of_steps() -> None:
    text = f"{STEP}    tool: {{ kind: noop, result: \"{{{{ args.results.fetch }}}} {{{{ results['fetch'] }}}}\" }}\nexecutor: {{ spec: {{ final_step: store }} }}\n"
    assert [place for place, _ in mentions(text, Thing("step", "fetch"))][-2:] == ["18:fetch", "18:fetch"]


def test_a_name_stands_for_what_wins() -> None:
    text = f'{STEP}    input: {{ fetch: 1 }}\n    tool: {{ kind: noop, result: "{{{{ fetch }}}}" }}\n'
    assert ("19:fetch", False) in mentions(text, Thing("input", "fetch", "store"))
    assert ("19:fetch", False) not in mentions(text, Thing("step", "fetch"))


def test_locals_of_a_template_are_nobodys() -> None:
    text = f"{STEP}    tool: {{ kind: noop, result: \"{{% for fetch in [1] %}}{{{{ fetch }}}}{{% endfor %}}{{{{ 'fetch' }}}}\" }}\n"
    assert all(not place.startswith("18:") for place, _ in mentions(text, Thing("step", "fetch")))


def test_labels_are_named_by_jumps_templates_and_results() -> None:
    text = (
        "workflow:\n  - step: one\n    tool:\n      - get: { kind: noop }\n"
        '      - put: { kind: noop, result: "{{ get.x }}", spec: { policy: { rules: [ { when: true, then: { do: jump, to: get } } ] } } }\n'
        "      - kind: noop\n        spec: { policy: { rules: [ { else: { then: { do: jump, to: previous } } } ] } }\n"
        '    next: two\n  - step: two\n    tool: { kind: noop, result: "{{ one.results.get.x }} {{ one.get.y }}" }\n'
    )
    assert mentions(text, Thing("task", "get", "one")) == [
        ("4:get", True), ("5:get", False), ("5:get", False), ("10:get", False), ("10:get", False),
    ]  # fmt: skip
    assert mentions(text, Thing("task", "put", "one")) == [("5:put", True), ("7:previous", False)]
    assert mentions(text, Thing("task", "task_2", "one")) == [("6:", True)]


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (Thing("workload", "url"), [("5:url", True), ("14:url", False)]),
        (Thing("workload", "cities"), [("5:cities", True), ("9:cities", False)]),
        (Thing("iterator", "city", "fetch"), [("9:city", True), ("14:city", False)]),
        (Thing("ctx", "total"), [("15:total", True), ("18:total", False), ("18:total", False), ("18:total", True)]),
        (Thing("iter", "page", "fetch"), [("15:page", True)]),
        (Thing("input", "rows", "store"), [("16:rows", True), ("18:rows", False)]),
        (Thing("credential", "pg_main"), [("4:pg_main", True), ("18:pg_main", False)]),
        (Thing("workbook", "tidy"), [("6:tidy", True), ("19:tidy", False)]),
        (Thing("edge", "onward"), [("16:onward", True), ("20:onward", False)]),
    ],
)
def test_other_things(thing: Thing, expected: list[tuple[str, bool]]) -> None:
    text = (
        f'{STEP}    tool: [ {{ kind: postgres, auth: pg_main, query: "{{{{ args.rows }}}} {{{{ ctx.total + total }}}}", set: {{ total: 1 }} }},\n'
        "      { kind: workbook, task: tidy } ]\n"
        '    spec: { on_step_fail: "route_edge:onward" }\n'
    )
    assert mentions(text, thing) == expected


def test_every_mention_in_the_corpus_spells_its_name() -> None:
    wrong: list[str] = []
    count = 0
    for name, reading in good():
        for one in occurrences(reading.subject):
            if one.spelled:
                count += 1
                if reading.text[one.start : one.end] != one.thing.name:
                    wrong.append(f"{name}: {one}")
    assert wrong == []
    assert count > 1500
