"""Conversion to messages: positions in code units, severities, replaced ranges."""

from __future__ import annotations

from lsprotocol import types

from noetl.authoring.completion.complete import complete
from noetl.authoring.features.symbols import symbols
from noetl.authoring.positions import Lines
from noetl.lsp import protocol
from tests.unit.authoring.editing import HEAD, typed


def test_a_diagnostic_has_code_severity_source_fix_and_columns_in_code_units() -> None:
    reading, offset = typed(f"{HEAD}  - {{ desc: 😀😀, step: store, next: ‸nowhere }}\n")
    (found,) = reading.diagnostics
    told = protocol.diagnostic_of(Lines(reading.text), reading, found)
    column = offset - reading.text.rindex("\n", 0, offset) - 1 + 2
    assert (told.code, told.source, told.severity) == ("NOE201", "noetl", types.DiagnosticSeverity.Error)
    assert told.message == f"{found.message}\n{found.fix}"
    assert told.range.start == types.Position(told.range.start.line, column)
    assert told.range.end.character == column + len("nowhere")


def test_a_completion_replaces_what_has_been_typed() -> None:
    reading, cursor = typed(f"{HEAD}  - {{ desc: 😀, step: store, next: fe‸ }}\n")
    found = protocol.completions_of(Lines(reading.text), cursor, complete(reading, cursor))
    item = found.items[0]
    assert isinstance(item.text_edit, types.TextEdit)
    replaced = item.text_edit.range
    assert (item.label, item.text_edit.new_text) == ("fetch", "fetch")
    assert replaced.end.character - replaced.start.character == len("fe")
    assert replaced.start.character == reading.text.rindex("fe") - reading.text.rindex("\n", 0, cursor) - 1 + 1


def test_positions_of_the_editor_are_turned_back() -> None:
    text = "a: 😀\nb: 😀c"
    assert protocol.offset_of(Lines(text), types.Position(1, 5)) == text.index("c")


def test_the_outline_keeps_its_tree() -> None:
    reading, _ = typed(f"{HEAD}‸")
    found = [protocol.symbol_of(Lines(reading.text), symbol) for symbol in symbols(reading)]
    workflow = next(symbol for symbol in found if symbol.name == "workflow")
    assert workflow.children is not None
    assert [child.name for child in workflow.children] == ["fetch"]
