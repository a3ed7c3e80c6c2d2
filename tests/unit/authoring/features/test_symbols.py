"""The outline: sections, steps and tasks, each inside of what holds it."""

from __future__ import annotations

from collections.abc import Iterable

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.features.symbols import Symbol, symbols
from noetl.wiring.embedded import language_kinds
from tests.unit.authoring.editing import HEAD, good


def test_steps_and_tasks_are_below_their_sections() -> None:
    found = {symbol.name: symbol for symbol in symbols(Reading(HEAD, "head.yaml", language_kinds()))}
    assert [*found] == ["apiVersion", "kind", "metadata", "keychain", "workload", "workbook", "workflow"]
    assert [child.name for child in found["workload"].children] == ["cities", "url", "nested"]
    assert [(child.name, child.detail) for child in found["workbook"].children] == [("tidy", "noop")]
    (step,) = found["workflow"].children
    assert (step.name, step.kind, step.detail) == ("fetch", "step", "noop, http · loop")
    assert [(task.name, task.detail) for task in step.children] == [("init", "noop"), ("get", "http")]


def test_a_document_that_cannot_be_parsed_has_an_outline() -> None:
    found = symbols(Reading(f'{HEAD}  - step: store\n    tool: {{ kind: "no', "broken.yaml", language_kinds()))
    assert [step.name for symbol in found if symbol.name == "workflow" for step in symbol.children] == [
        "fetch",
        "store",
    ]


def check(found: Iterable[Symbol], start: int, end: int) -> int:
    count = 0
    for symbol in found:
        assert start <= symbol.start <= symbol.name_start <= symbol.name_end <= symbol.end <= end, symbol
        count += 1 + check(symbol.children, symbol.start, symbol.end)
    return count


def test_in_every_good_playbook_each_part_lies_inside_of_what_holds_it() -> None:
    assert sum(check(symbols(reading), 0, len(reading.text)) for _, reading in good()) > 1000
