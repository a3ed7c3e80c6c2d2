"""Fixes: offered only where they help, and then they do."""

from __future__ import annotations

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.features.fixes import fixes
from noetl.authoring.features.rename import apply_edits
from noetl.wiring.embedded import language_kinds
from tests.corpus.corpus import files
from tests.unit.authoring.editing import HEAD, typed

STEP = f"{HEAD}  - step: store\n"


def fixed(text: str) -> list[str]:
    reading, offset = typed(text)
    return [apply_edits(reading.text, [fix.edit]) for fix in fixes(reading, offset, offset)]


def test_the_name_that_was_meant_is_written() -> None:
    for wrong, right in (
        ("next: fet‸sch", "next: fetch"),
        ("tool: { kind: no‸p }", "tool: { kind: noop }"),
        ("tool: { kind: 'no‸p' }", "tool: { kind: 'noop' }"),
        (
            'tool: { kind: noop, result: "{{ ctx.total | ro‸und2 }}" }',
            'tool: { kind: noop, result: "{{ ctx.total | round }}" }',
        ),
        ("tol‸l: { kind: noop }", "tool: { kind: noop }"),
    ):
        assert fixed(f"{STEP}    {wrong}\n") == [f"{STEP}    {right}\n"]


def test_only_the_name_in_a_longer_value_is_replaced() -> None:
    text = f"{STEP}    tool: {{ kind: noop }}\n".replace(
        "    loop:", '    spec: { on_step_fail: "route_edge:onwa‸d" }\n    loop:', 1
    )
    assert fixed(text) == [text.replace("onwa‸d", "onward")]


def test_a_template_is_put_in_quotes() -> None:
    wrong = STEP + "    tool:\n      kind: noop\n      result: ‸{{ ctx.total }} of all\n"
    assert fixed(wrong) == [wrong.replace("‸{{ ctx.total }} of all", '"{{ ctx.total }} of all"')]


def test_elsewhere_there_is_nothing_to_fix() -> None:
    assert fixed(f"{STEP}    tool: {{ kind: nop }}\n‸") == []
    assert fixed(f"{STEP}    tool: {{ kind: no‸op }}\n") == []


def test_every_suggestion_of_the_broken_corpus_is_a_fix_that_helps() -> None:
    without: list[str] = []
    count = 0
    for path in files("broken"):
        reading = Reading(path.read_bytes().decode("utf-8", "replace"), path.name, language_kinds())
        for diagnostic in reading.diagnostics:
            if "Did you mean" in diagnostic.message:
                count += 1
                found = [fix for fix in fixes(reading, *reading.span(diagnostic)) if fix.diagnostic == diagnostic]
                if not found:
                    without.append(f"{path.name}: {diagnostic.message}")
                for fix in found:
                    after = reading.with_text(apply_edits(reading.text, [fix.edit])).diagnostics
                    assert len(after) < len(reading.diagnostics)
    assert without == []
    assert count > 30
