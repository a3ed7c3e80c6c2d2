"""Language server: dispatches an editor's requests to the features.

A failing handler is logged to stderr and answered with an error. Tested in tests/acceptance/language/test_lsp.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from noetl import __version__
from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.complete import complete
from noetl.authoring.features.definition import definitions, references
from noetl.authoring.features.fixes import fixes
from noetl.authoring.features.formatting import format_edits
from noetl.authoring.features.hover import hover
from noetl.authoring.features.rename import RefusedRename, rename, target
from noetl.authoring.features.symbols import symbols
from noetl.authoring.positions import Encoding, Lines
from noetl.dsl.grammar.kinds import Kinds
from noetl.lsp import protocol
from noetl.lsp.open_documents import Cases, Catalogs, Known, Opened

_LOG: Final = logging.getLogger(__name__)
_ENCODINGS: Final[dict[str, Encoding]] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}
_TRIGGERS: Final = (".", "|", " ", "'", '"', ":", "{")


class Refused(JsonRpcException):
    """Request refused for a reason that its author can remove."""

    CODE = types.LSPErrorCodes.RequestFailed.value


def without_refusals(record: logging.LogRecord) -> bool:
    """Whether to log a record: a refused request is an answer, not a failure."""
    return not (record.exc_info and isinstance(record.exc_info[1], Refused))


class PlaybookServer(LanguageServer):
    """Server with the documents that the editor has open."""

    def __init__(self, kinds: Kinds, catalogs: Catalogs | None = None, cases: Cases | None = None) -> None:
        super().__init__("noetl", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.known = Known(kinds, catalogs, cases)
        self.open: dict[str, Opened] = {}
        self.was_shut_down = False
        for method, handler, options in _FEATURES:
            self.feature(method, options)(handler)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log a failure; a message box in the editor would interrupt."""
        if not isinstance(error, Refused):
            _LOG.error("%s: %s", getattr(source, "__name__", source), error)

    def encoding(self) -> Encoding:
        """Return the negotiated position encoding; UTF-16 by default."""
        agreed = self.workspace.position_encoding
        return _ENCODINGS.get(str(getattr(agreed, "value", agreed)), "utf-16")

    def show(self, document: Opened) -> None:
        """Store a document and publish its diagnostics."""
        self.open[document.uri] = document
        reading, tests = document.reading, document.tests
        found = [protocol.diagnostic_of(document.lines, reading, one) for one in reading.diagnostics] if reading else []
        if tests is not None:
            found = [protocol.trouble_of(document.lines, tests.source, one) for one in tests.troubles]
        self.publish(document.uri, found, document.version)

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def playbook(self, document: types.TextDocumentIdentifier) -> OpenPlaybook | None:
        """Return an open playbook, or None for any other document."""
        opened = self.open.get(document.uri)
        if opened is None or opened.reading is None:
            return None
        return OpenPlaybook(document.uri, opened.lines, opened.reading)


class OpenPlaybook(NamedTuple):
    """Playbook that a request refers to."""

    uri: str
    lines: Lines
    reading: Reading

    def offset(self, position: types.Position) -> int:
        return protocol.offset_of(self.lines, position)

    def location(self, start: int, end: int) -> types.Location:
        return types.Location(self.uri, protocol.range_of(self.lines, start, end))


def _did_open(ls: PlaybookServer, params: types.DidOpenTextDocumentParams) -> None:
    item = params.text_document
    ls.show(Opened(item.uri, item.text, str(item.language_id), item.version, ls.encoding(), ls.known))


def _did_change(ls: PlaybookServer, params: types.DidChangeTextDocumentParams) -> None:
    before = ls.open.get(params.text_document.uri)
    if before is not None and params.content_changes:
        ls.show(before.changed(params.content_changes[-1].text, params.text_document.version))


def _did_save(ls: PlaybookServer, _params: types.DidSaveTextDocumentParams) -> None:
    """Check all open documents again: they may depend on the saved one."""
    ls.known.forget()
    for document in [*ls.open.values()]:
        ls.show(document.changed(document.text, document.version))


def _did_close(ls: PlaybookServer, params: types.DidCloseTextDocumentParams) -> None:
    ls.open.pop(params.text_document.uri, None)
    ls.publish(params.text_document.uri, [])


def _complete(playbook: OpenPlaybook, params: types.CompletionParams) -> types.CompletionList:
    cursor = playbook.offset(params.position)
    return protocol.completions_of(playbook.lines, cursor, complete(playbook.reading, cursor))


def _hover(playbook: OpenPlaybook, params: types.HoverParams) -> types.Hover | None:
    about = hover(playbook.reading, playbook.offset(params.position))
    if about is None:
        return None
    return types.Hover(protocol.markdown(about.text), protocol.range_of(playbook.lines, about.start, about.end))


def _definitions(playbook: OpenPlaybook, params: types.DefinitionParams) -> list[types.Location]:
    return [playbook.location(*one) for one in definitions(playbook.reading, playbook.offset(params.position))]


def _references(playbook: OpenPlaybook, params: types.ReferenceParams) -> list[types.Location]:
    offset, definitions_too = playbook.offset(params.position), params.context.include_declaration
    return [playbook.location(*one) for one in references(playbook.reading, offset, definitions_too=definitions_too)]


def _prepare_rename(playbook: OpenPlaybook, params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
    renamed = target(playbook.reading, playbook.offset(params.position))
    if renamed is None:
        return None
    return types.PrepareRenamePlaceholder(
        protocol.range_of(playbook.lines, renamed.start, renamed.end), renamed.thing.name
    )


def _rename(playbook: OpenPlaybook, params: types.RenameParams) -> types.WorkspaceEdit:
    try:
        edits = rename(playbook.reading, playbook.offset(params.position), params.new_name)
    except RefusedRename as refused:
        raise Refused(str(refused)) from None
    return types.WorkspaceEdit(changes={playbook.uri: protocol.edits_of(playbook.lines, edits)})


def _symbols(playbook: OpenPlaybook, _params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    return [protocol.symbol_of(playbook.lines, symbol) for symbol in symbols(playbook.reading)]


def _fixes(playbook: OpenPlaybook, params: types.CodeActionParams) -> list[types.CodeAction]:
    offered = fixes(playbook.reading, playbook.offset(params.range.start), playbook.offset(params.range.end))
    return [protocol.action_of(playbook.lines, playbook.reading, playbook.uri, fix) for fix in offered]


def _format(playbook: OpenPlaybook, _params: types.DocumentFormattingParams) -> list[types.TextEdit]:
    return protocol.edits_of(playbook.lines, format_edits(playbook.reading))


def _shut_down(ls: PlaybookServer, *_: Any) -> None:
    ls.was_shut_down = True


def _on_playbook(handler: Callable[[OpenPlaybook, Any], Any]) -> Callable[[PlaybookServer, Any], Any]:
    def handle(ls: PlaybookServer, params: Any) -> Any:
        playbook = ls.playbook(params.text_document)
        return None if playbook is None else handler(playbook, params)

    return handle


_FEATURES: Final[tuple[tuple[str, Any, Any], ...]] = (
    (types.TEXT_DOCUMENT_DID_OPEN, _did_open, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, _did_change, None),
    (types.TEXT_DOCUMENT_DID_SAVE, _did_save, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, _did_close, None),
    (types.TEXT_DOCUMENT_COMPLETION, _on_playbook(_complete), types.CompletionOptions(trigger_characters=_TRIGGERS)),
    (types.TEXT_DOCUMENT_HOVER, _on_playbook(_hover), None),
    (types.TEXT_DOCUMENT_DEFINITION, _on_playbook(_definitions), None),
    (types.TEXT_DOCUMENT_REFERENCES, _on_playbook(_references), None),
    (types.TEXT_DOCUMENT_PREPARE_RENAME, _on_playbook(_prepare_rename), None),
    (types.TEXT_DOCUMENT_RENAME, _on_playbook(_rename), types.RenameOptions(prepare_provider=True)),
    (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _on_playbook(_symbols), None),
    (types.TEXT_DOCUMENT_CODE_ACTION, _on_playbook(_fixes), types.CodeActionOptions([types.CodeActionKind.QuickFix])),
    (types.TEXT_DOCUMENT_FORMATTING, _on_playbook(_format), None),
    (types.SHUTDOWN, _shut_down, None),
)
