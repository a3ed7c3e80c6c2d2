"""The language server: takes an editor's requests, asks the features, and answers.

Every handler is a few lines: find the document and the offset, call a pure function, convert. What fails inside a handler is
written to stderr and answered as an error; the server goes on. Tested in tests/acceptance/language/test_lsp.py.
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from noetl import __version__
from noetl.dsl.kinds import Kinds
from noetl.lsp import protocol
from noetl.lsp.complete import complete
from noetl.lsp.definition import definitions, references
from noetl.lsp.fixes import fixes
from noetl.lsp.formatting import formatted
from noetl.lsp.hover import hover
from noetl.lsp.opened import Cases, Catalogs, Known, Opened
from noetl.lsp.positions import Encoding, Lines
from noetl.lsp.reading import Reading
from noetl.lsp.rename import RefusedRename, rename, target
from noetl.lsp.symbols import symbols

_LOG: Final = logging.getLogger(__name__)
_ENCODINGS: Final[dict[str, Encoding]] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}
_TRIGGERS: Final = (".", "|", " ", "'", '"', ":", "{")


class Refused(JsonRpcException):
    """A request that was understood and is refused for a reason that its author can remove."""

    CODE = types.LSPErrorCodes.RequestFailed.value


class PlaybookServer(LanguageServer):
    """The server with the documents that the editor has open."""

    def __init__(self, kinds: Kinds, catalogs: Catalogs | None = None, cases: Cases | None = None) -> None:
        super().__init__("noetl", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.known = Known(kinds, catalogs, cases)
        self.open: dict[str, Opened] = {}
        self.was_shut_down = False
        for method, handler, options in _FEATURES:
            self.feature(method, options)(handler)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Write a failure to the log; a box in the editor would only interrupt."""
        if not isinstance(error, Refused):
            _LOG.error("%s: %s", getattr(source, "__name__", source), error)

    def encoding(self) -> Encoding:
        """Give the encoding that was agreed on: UTF-16, unless the editor wants another."""
        agreed = self.workspace.position_encoding
        return _ENCODINGS.get(str(getattr(agreed, "value", agreed)), "utf-16")

    def show(self, document: Opened) -> None:
        """Keep a document and publish what is wrong with it."""
        self.open[document.uri] = document
        reading, tests = document.reading, document.tests
        found = [protocol.diagnostic_of(document.lines, reading, one) for one in reading.diagnostics] if reading else []
        if tests is not None:
            found = [protocol.trouble_of(document.lines, tests.source, one) for one in tests.troubles]
        self.publish(document.uri, found, document.version)

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def at(self, document: types.TextDocumentIdentifier) -> Asked | None:
        """Give an open playbook; None for anything else."""
        opened = self.open.get(document.uri)
        if opened is None or opened.reading is None:
            return None
        return Asked(document.uri, opened.lines, opened.reading)


class Asked(NamedTuple):
    """A playbook that a request is about."""

    uri: str
    lines: Lines
    reading: Reading

    def offset(self, position: types.Position) -> int:
        return protocol.offset_of(self.lines, position)

    def location(self, start: int, end: int) -> types.Location:
        return types.Location(self.uri, protocol.range_of(self.lines, start, end))


def _opened(ls: PlaybookServer, params: types.DidOpenTextDocumentParams) -> None:
    item = params.text_document
    ls.show(Opened(item.uri, item.text, str(item.language_id), item.version, ls.encoding(), ls.known))


def _changed(ls: PlaybookServer, params: types.DidChangeTextDocumentParams) -> None:
    before = ls.open.get(params.text_document.uri)
    if before is not None and params.content_changes:
        ls.show(before.changed(params.content_changes[-1].text, params.text_document.version))


def _saved(ls: PlaybookServer, _params: types.DidSaveTextDocumentParams) -> None:
    """Look at all open documents again: they may call the playbook that was saved, or be its tests."""
    ls.known.forget()
    for document in [*ls.open.values()]:
        ls.show(document.changed(document.text, document.version))


def _closed(ls: PlaybookServer, params: types.DidCloseTextDocumentParams) -> None:
    ls.open.pop(params.text_document.uri, None)
    ls.publish(params.text_document.uri, [])


def _completed(ls: PlaybookServer, params: types.CompletionParams) -> types.CompletionList | None:
    asked = ls.at(params.text_document)
    if asked is None:
        return None
    cursor = asked.offset(params.position)
    return protocol.completions_of(asked.lines, cursor, complete(asked.reading, cursor))


def _hovered(ls: PlaybookServer, params: types.HoverParams) -> types.Hover | None:
    asked = ls.at(params.text_document)
    found = hover(asked.reading, asked.offset(params.position)) if asked else None
    if asked is None or found is None:
        return None
    return types.Hover(protocol.markdown(found.text), protocol.range_of(asked.lines, found.start, found.end))


def _defined(ls: PlaybookServer, params: types.DefinitionParams) -> list[types.Location] | None:
    asked = ls.at(params.text_document)
    if asked is None:
        return None
    return [asked.location(*one) for one in definitions(asked.reading, asked.offset(params.position))]


def _referred(ls: PlaybookServer, params: types.ReferenceParams) -> list[types.Location] | None:
    asked = ls.at(params.text_document)
    if asked is None:
        return None
    offset, all_of_them = asked.offset(params.position), params.context.include_declaration
    return [asked.location(*one) for one in references(asked.reading, offset, definitions_too=all_of_them)]


def _prepared(ls: PlaybookServer, params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
    asked = ls.at(params.text_document)
    found = target(asked.reading, asked.offset(params.position)) if asked else None
    if asked is None or found is None:
        return None
    return types.PrepareRenamePlaceholder(protocol.range_of(asked.lines, found.start, found.end), found.thing.name)


def _renamed(ls: PlaybookServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
    asked = ls.at(params.text_document)
    if asked is None:
        return None
    try:
        edits = rename(asked.reading, asked.offset(params.position), params.new_name)
    except RefusedRename as refused:
        raise Refused(str(refused)) from None
    return types.WorkspaceEdit(changes={asked.uri: protocol.edits_of(asked.lines, edits)})


def _outlined(ls: PlaybookServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
    asked = ls.at(params.text_document)
    return [protocol.symbol_of(asked.lines, symbol) for symbol in symbols(asked.reading)] if asked else None


def _fixed(ls: PlaybookServer, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    asked = ls.at(params.text_document)
    if asked is None:
        return None
    found = fixes(asked.reading, asked.offset(params.range.start), asked.offset(params.range.end))
    return [protocol.action_of(asked.lines, asked.reading, asked.uri, fix) for fix in found]


def _formatted(ls: PlaybookServer, params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
    asked = ls.at(params.text_document)
    return protocol.edits_of(asked.lines, formatted(asked.reading)) if asked else None


def _shut_down(ls: PlaybookServer, *_: Any) -> None:
    ls.was_shut_down = True


_FEATURES: Final[tuple[tuple[str, Any, Any], ...]] = (
    (types.TEXT_DOCUMENT_DID_OPEN, _opened, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, _changed, None),
    (types.TEXT_DOCUMENT_DID_SAVE, _saved, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, _closed, None),
    (types.TEXT_DOCUMENT_COMPLETION, _completed, types.CompletionOptions(trigger_characters=_TRIGGERS)),
    (types.TEXT_DOCUMENT_HOVER, _hovered, None),
    (types.TEXT_DOCUMENT_DEFINITION, _defined, None),
    (types.TEXT_DOCUMENT_REFERENCES, _referred, None),
    (types.TEXT_DOCUMENT_PREPARE_RENAME, _prepared, None),
    (types.TEXT_DOCUMENT_RENAME, _renamed, types.RenameOptions(prepare_provider=True)),
    (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _outlined, None),
    (types.TEXT_DOCUMENT_CODE_ACTION, _fixed, types.CodeActionOptions([types.CodeActionKind.QuickFix])),
    (types.TEXT_DOCUMENT_FORMATTING, _formatted, None),
    (types.SHUTDOWN, _shut_down, None),
)
