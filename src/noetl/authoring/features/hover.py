"""Hover at an offset. Tested in tests/unit/authoring/features/test_hover.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from noetl.authoring.analysis.occurrences import Occurrence, Thing
from noetl.authoring.analysis.reading import Reading
from noetl.authoring.features.definition import occurrences_at
from noetl.authoring.language.describe import (
    callee_text,
    field_text,
    kind_text,
    rule_text,
    short,
    step_text,
    task_text,
)
from noetl.authoring.language.grammar_at import Spot, options, spot_at
from noetl.authoring.language.members import describe_value, members
from noetl.authoring.language.template_tokens import Token, path_before, tokens
from noetl.dsl.analysis.scopes import SCOPES, WHERE, step_writes
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.grammar.types import Choice
from noetl.dsl.reading.nodes import Scalar
from noetl.dsl.rules import BY_CODE
from noetl.expr import FILTERS, FUNCTIONS, TESTS, Callee


class Hover(NamedTuple):
    """Markdown text about a range."""

    start: int
    end: int
    text: str


def hover(reading: Reading, offset: int) -> Hover | None:
    """Return what is known at an offset; rules of diagnostics come first."""
    parts = [*_rules(reading, offset)]
    about = _in_template(reading, offset) or _thing(reading, offset) or _spot(reading, offset)
    if about is not None:
        parts.append(about)
    if not parts:
        return None
    start, end, _ = parts[-1]
    return Hover(start, end, "\n\n---\n\n".join(text for _, _, text in parts))


def _rules(reading: Reading, offset: int) -> Iterator[Hover]:
    for diagnostic in reading.diagnostics:
        start, end = reading.span(diagnostic)
        if start <= offset <= max(end, start) and diagnostic.code in BY_CODE:
            yield Hover(start, end, rule_text(BY_CODE[diagnostic.code]))


def _thing(reading: Reading, offset: int) -> Hover | None:
    for one in occurrences_at(reading, offset):
        text = _thing_text(reading, one.thing)
        if text and _is_name(one):
            return Hover(one.start, one.end, text)
    return None


def _is_name(one: Occurrence) -> bool:
    return one.spelled or not one.defines


def _thing_text(reading: Reading, thing: Thing) -> str:
    subject = reading.subject
    match thing.kind:
        case "step":
            step = subject.playbook.step(thing.name)
            return step_text(step, subject.net) if step else ""
        case "task":
            owner = subject.playbook.step(thing.owner)
            task = next((task for task in owner.tasks if task.label == thing.name), None) if owner else None
            return task_text(task, subject.kinds.get(task.kind)) if task else ""
        case "workbook":
            called = subject.workbook.get(thing.name)
            return task_text(called, subject.kinds.get(called.kind)) if called else ""
        case "workload":
            default = subject.playbook.workload.get(thing.name)
            return (
                f"**{thing.name}** · key of the workload\n\nDefault: {describe_value(default.data)}" if default else ""
            )
        case "ctx":
            return f"**ctx.{thing.name}**\n\n{_writers(reading, thing)}"
        case "iterator":
            return f"**{thing.name}** · the item of the loop of step `{thing.owner}`"
        case "credential":
            return f"**{thing.name}** · credential"
    return ""


def _writers(reading: Reading, thing: Thing) -> str:
    lines = [
        f"- `{step.name}`: `{short(str(assign.value.data))}`"
        for step in reading.subject.playbook.workflow
        for assign in step_writes(step)
        if assign.scope == "ctx" and assign.key.partition(".")[0] == thing.name
    ]
    return "Written by:\n\n" + "\n".join(dict.fromkeys(lines)) if lines else "No step writes it."


def _spot(reading: Reading, offset: int) -> Hover | None:
    spot = spot_at(reading.subject.document.root, reading.subject.kinds, offset)
    if spot is None or not isinstance(spot.node, Scalar):
        return None
    text = _spot_text(reading, spot)
    return Hover(spot.node.start, spot.node.end, text) if text else None


def _spot_text(reading: Reading, spot: Spot) -> str:
    if spot.is_key:
        return field_text(spot.field, spot.level) if spot.field else ""
    word = spot.node.text if isinstance(spot.node, Scalar) else ""
    kind = reading.subject.kinds.get(word)
    is_kind = spot.key == "kind" and spot.level_name in ("task", "workbook_task", "cursor")
    if kind is not None and is_kind:
        return kind_text(kind)
    if spot.field is not None and any(isinstance(option, Choice) for option in options(spot.type)):
        return field_text(spot.field, spot.level)
    return ""


def _in_template(reading: Reading, offset: int) -> Hover | None:
    for site in reading.sites_at(offset):
        place = reading.inside(site.node, offset)
        if place is None:
            continue
        code = tokens(site.node.text)
        number = next((n for n, one in enumerate(code) if one.kind == "name" and one.start <= place <= one.end), None)
        text = _name_text(reading, site, code, number, offset) if number is not None else ""
        if text and number is not None:
            return Hover(offset - (place - code[number].start), offset + (code[number].end - place), text)
    return None


def _name_text(reading: Reading, site: TemplateSite, code: Sequence[Token], number: int, offset: int) -> str:
    name = code[number].text
    before = code[number - 1].text if number else ""
    behind = code[number + 1].text if number + 1 < len(code) else ""
    callee = _callee(name, before, code[number - 2].text if number > 1 else "", behind)
    if callee is not None:
        return callee_text(callee)
    path = path_before(code, number)
    if len(path) == 1 and name in SCOPES:
        where = f"\n\nIt exists {WHERE[name]}." if name in WHERE else ""
        return f"**{name}** · scope\n\n{SCOPES[name]}{where}"
    thing = next((text for one in occurrences_at(reading, offset) if (text := _thing_text(reading, one.thing))), "")
    if thing:
        return thing
    known = members(reading.subject, site, path[:-1]).get(path[-1]) if len(path) > 1 else None
    return f"**{'.'.join(path)}**\n\n{known}" if known else ""


def _callee(name: str, before: str, earlier: str, behind: str) -> Callee | None:
    if before == "|":
        return FILTERS.get(name)
    if before == "is" or (before == "not" and earlier == "is"):
        return TESTS.get(name)
    return FUNCTIONS.get(name) if behind == "(" and before != "." else None
