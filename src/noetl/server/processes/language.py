"""Answers about a playbook's text: diagnostics, completion, hover, rename, format.

Pure functions of the text, but for the processor time that quick fixes may take: the API calls them in a process of its
own. Tested in tests/server/api/test_language.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import process_time
from typing import Any, Final, Literal

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.complete import complete
from noetl.authoring.features.definition import definitions, references
from noetl.authoring.features.fixes import fix_of
from noetl.authoring.features.formatting import format_edits
from noetl.authoring.features.hover import hover
from noetl.authoring.features.rename import Edit, RefusedRename, rename, target
from noetl.authoring.features.symbols import Symbol as Outlined
from noetl.authoring.features.symbols import symbols
from noetl.authoring.positions import CodeUnits
from noetl.dsl.checking.uses import Unavailable
from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.rules import BY_CODE
from noetl.dsl.tree.pin import pinned
from noetl.server.processes.graph import graph_of, positions_of
from noetl.wire.language import (
    Completion,
    CompletionList,
    Definitions,
    Formatted,
    Hovered,
    HoverText,
    LocatedDiagnostic,
    QuickFix,
    Range,
    Renamed,
    Symbol,
    TextChecked,
    TextEdit,
)
from noetl.wire.screens.graph import Graph

Feature = Literal["check", "complete", "hover", "definition", "rename", "format"]
# What a check adds to its diagnostics must not make it late: a text that can be registered can be checked.
_FIXING_S: Final = 0.4  # processor time after which no further quick fix is tried
_DRAWING_S: Final = 0.6  # and after which no graph is drawn
_MOST_STEPS: Final = 1_000  # of a graph
_MOST_ARCS: Final = 2_500
_SHORT: Final = 100_000  # characters; a longer text has no quick fixes, and no outline while it cannot be read


@dataclass(frozen=True, slots=True)
class Refused:
    """A rename that would do harm, and why."""

    why: str


class Text:
    """A playbook's text: read once, checked once."""

    def __init__(self, text: str, kinds: Kinds, unavailable: Unavailable) -> None:
        self.reading = Reading(text, "playbook", kinds, unavailable=unavailable)
        self.units = CodeUnits(text)

    def answer(self, feature: Feature, offset: int, name: str | None) -> Any:
        """Answer one question; offsets are UTF-16 code units, here and in the answer."""
        if feature == "check":
            return self._checked
        return _FEATURES[feature](self.reading, self.units, self.units.offset(offset), name)

    @cached_property
    def _checked(self) -> TextChecked:
        begun, reading, units = process_time(), self.reading, self.units
        is_short = len(reading.text) <= _SHORT
        diagnostics = [
            # Each try of a fix checks a whole text again.
            _diagnostic(reading, units, one, fixable=is_short and process_time() - begun < _FIXING_S)
            for one in reading.diagnostics
        ]
        is_early = process_time() - begun < _DRAWING_S
        return TextChecked(
            whole=reading.is_whole,
            diagnostics=diagnostics,
            symbols=[_symbol(units, one) for one in symbols(reading)] if is_short or reading.is_whole else [],
            graph=_graph(reading) if is_early and reading.is_whole else None,
        )


def _graph(reading: Reading) -> Graph | None:
    subject = reading.exact
    workflow = subject.playbook.workflow
    if len(workflow) > _MOST_STEPS or sum(len(step.arcs) for step in workflow) > _MOST_ARCS:
        return None
    is_valid = all(one.severity != "error" for one in reading.diagnostics)
    content_hash = pinned(subject.playbook)[1] if is_valid else ""
    return graph_of(subject.playbook, positions_of(subject.playbook, subject.source), content_hash)


def _diagnostic(reading: Reading, units: CodeUnits, found: Diagnostic, *, fixable: bool) -> LocatedDiagnostic:
    start, end = reading.span(found)
    fix = fix_of(reading, found) if fixable else None
    return LocatedDiagnostic(
        code=found.code,
        severity=found.severity,
        message=found.message,
        fix=found.fix,
        path=found.path,
        line=found.line,
        column=found.column,
        start=units.units(start),
        end=units.units(end),
        why=BY_CODE[found.code].why,
        fixes=[] if fix is None else [QuickFix(title=fix.title, edits=_edits(units, (fix.edit,)))],
    )


def _complete(reading: Reading, units: CodeUnits, cursor: int, _: Any) -> CompletionList:
    found = complete(reading, cursor)
    items = tuple(
        Completion(
            label=one.label,
            kind=one.kind,
            detail=one.detail,
            text=one.text,
            insert=one.insert or one.label,
            rank=one.rank,
        )
        for one in found.items
    )
    return CompletionList(start=units.units(found.start), end=units.units(cursor), items=items)


def _hover(reading: Reading, units: CodeUnits, offset: int, _: Any) -> Hovered:
    found = hover(reading, offset)
    if found is None:
        return Hovered()
    return Hovered(hover=HoverText(start=units.units(found.start), end=units.units(found.end), text=found.text))


def _definition(reading: Reading, units: CodeUnits, offset: int, _: Any) -> Definitions:
    return Definitions(
        definitions=_ranges(units, definitions(reading, offset)), mentions=_ranges(units, references(reading, offset))
    )


def _rename(reading: Reading, units: CodeUnits, offset: int, name: str | None) -> Renamed | Refused:
    found = target(reading, offset)
    try:
        edits = [] if name is None else _edits(units, rename(reading, offset, name))
    except RefusedRename as refused:
        return Refused(str(refused))
    if found is None:
        return Renamed(target=None, name=None, edits=[])
    (place,) = _ranges(units, [(found.start, found.end)])
    return Renamed(target=place, name=found.thing.name, edits=edits)


def _format(reading: Reading, units: CodeUnits, *_: Any) -> Formatted:
    return Formatted(edits=_edits(units, format_edits(reading)))


def _symbol(units: CodeUnits, one: Outlined) -> Symbol:
    return Symbol(
        name=one.name,
        kind=one.kind,
        detail=one.detail,
        start=units.units(one.start),
        end=units.units(one.end),
        name_start=units.units(one.name_start),
        name_end=units.units(one.name_end),
        children=[_symbol(units, child) for child in one.children],
    )


def _ranges(units: CodeUnits, found: Iterable[tuple[int, int]]) -> list[Range]:
    return [Range(start=units.units(start), end=units.units(end)) for start, end in found]


def _edits(units: CodeUnits, edits: Iterable[Edit]) -> list[TextEdit]:
    return [TextEdit(start=units.units(one.start), end=units.units(one.end), text=one.text) for one in edits]


_FEATURES: Final[Mapping[str, Callable[[Reading, CodeUnits, int, str | None], Any]]] = {
    "complete": _complete,
    "hover": _hover,
    "definition": _definition,
    "rename": _rename,
    "format": _format,
}
