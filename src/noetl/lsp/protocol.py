"""Convert results of the features to messages of the Language Server Protocol.

Tested in tests/unit/lsp/test_protocol.py and, over the wire, in tests/acceptance/language/test_lsp.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.complete import Completions
from noetl.authoring.completion.items import Item
from noetl.authoring.features.fixes import Fix
from noetl.authoring.features.rename import Edit
from noetl.authoring.features.symbols import Symbol
from noetl.authoring.positions import Lines
from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.reading.nodes import Source
from noetl.testing.cases.files.problems import FileProblem

SOURCE = "noetl"
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "hint": types.DiagnosticSeverity.Hint,
}
_ITEM = {
    "field": types.CompletionItemKind.Property,
    "kind": types.CompletionItemKind.Module,
    "word": types.CompletionItemKind.EnumMember,
    "step": types.CompletionItemKind.Class,
    "task": types.CompletionItemKind.Method,
    "scope": types.CompletionItemKind.Variable,
    "key": types.CompletionItemKind.Field,
    "filter": types.CompletionItemKind.Function,
    "test": types.CompletionItemKind.Function,
    "function": types.CompletionItemKind.Function,
    "credential": types.CompletionItemKind.Constant,
    "playbook": types.CompletionItemKind.File,
}
_SYMBOL = {
    "section": types.SymbolKind.Namespace,
    "step": types.SymbolKind.Class,
    "task": types.SymbolKind.Method,
    "key": types.SymbolKind.Field,
}


def range_of(lines: Lines, start: int, end: int) -> types.Range:
    first, last = lines.place(start), lines.place(end)
    return types.Range(types.Position(*first), types.Position(*last))


def offset_of(lines: Lines, position: types.Position) -> int:
    return lines.offset(position.line, position.character)


def diagnostic_of(lines: Lines, reading: Reading, diagnostic: Diagnostic) -> types.Diagnostic:
    """Convert a diagnostic; its fix is part of the message."""
    return types.Diagnostic(
        range=range_of(lines, *reading.span(diagnostic)),
        message=f"{diagnostic.message}\n{diagnostic.fix}",
        severity=_SEVERITY[diagnostic.severity],
        code=diagnostic.code,
        source=SOURCE,
    )


def trouble_of(lines: Lines, source: Source, trouble: FileProblem) -> types.Diagnostic:
    """Convert a problem of a test file."""
    return types.Diagnostic(
        range=range_of(lines, source.offset(trouble.start), source.offset(trouble.end)),
        message=f"{trouble.message}\n{trouble.fix}".rstrip(),
        severity=types.DiagnosticSeverity.Error,
        source=SOURCE,
    )


def completions_of(lines: Lines, cursor: int, found: Completions) -> types.CompletionList:
    """Convert completions; each replaces the typed prefix."""
    where = range_of(lines, found.start, cursor)
    items = [_item(item, number, where) for number, item in enumerate(found.items)]
    return types.CompletionList(is_incomplete=False, items=items)


def _item(item: Item, number: int, where: types.Range) -> types.CompletionItem:
    return types.CompletionItem(
        label=item.label,
        kind=_ITEM[item.kind],
        detail=item.detail or None,
        documentation=markdown(item.text) if item.text else None,
        sort_text=f"{item.rank}{number:04}",
        filter_text=item.label,
        text_edit=types.TextEdit(where, item.insert or item.label),
    )


def markdown(text: str) -> types.MarkupContent:
    return types.MarkupContent(types.MarkupKind.Markdown, text)


def edits_of(lines: Lines, edits: Iterable[Edit]) -> list[types.TextEdit]:
    return [types.TextEdit(range_of(lines, edit.start, edit.end), edit.text) for edit in edits]


def action_of(lines: Lines, reading: Reading, uri: str, fix: Fix) -> types.CodeAction:
    """Convert a fix to a quick fix."""
    return types.CodeAction(
        title=fix.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic_of(lines, reading, fix.diagnostic)],
        is_preferred=True,
        edit=types.WorkspaceEdit(changes={uri: edits_of(lines, (fix.edit,))}),
    )


def symbol_of(lines: Lines, symbol: Symbol) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=symbol.name,
        kind=_SYMBOL[symbol.kind],
        detail=symbol.detail or None,
        range=range_of(lines, symbol.start, symbol.end),
        selection_range=range_of(lines, symbol.name_start, symbol.name_end),
        children=[symbol_of(lines, child) for child in symbol.children],
    )
