"""The documents that an editor has open, each read once per version and only when somebody asks.

Tested in tests/unit/lsp/test_opened.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

from noetl.dsl.kinds import Kinds
from noetl.lsp.positions import Encoding, Lines
from noetl.lsp.reading import Reading, is_playbook

Catalogs = Callable[[str], Collection[str] | None]


class Opened:
    """One version of an open document."""

    def __init__(
        self, uri: str, text: str, language: str, version: int | None, encoding: Encoding, known: Known
    ) -> None:
        self.uri = uri
        self.text = text
        self.language = language
        self.version = version
        self.encoding = encoding
        self._known = known

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text, self.encoding)

    @cached_property
    def reading(self) -> Reading | None:
        """What the document says; None where it is not a playbook."""
        if not is_playbook(self.text, self.language):
            return None
        return Reading(self.text, self.uri, self._known.kinds, self._known.catalog(self.uri))

    def changed(self, text: str, version: int | None) -> Opened:
        return Opened(self.uri, text, self.language, version, self.encoding, self._known)


class Known:
    """What there is besides the document: tool kinds, and other playbooks that it may call."""

    def __init__(self, kinds: Kinds, catalogs: Catalogs | None = None) -> None:
        self.kinds = kinds
        self._catalogs = catalogs
        self._found: dict[str, Collection[str] | None] = {}

    def catalog(self, uri: str) -> Collection[str] | None:
        """Give the playbooks that a document may call; looked for once, until `forget`."""
        if uri not in self._found:
            self._found[uri] = self._catalogs(uri) if self._catalogs else None
        return self._found[uri]

    def forget(self) -> None:
        """Look again at the next question: a file has been saved."""
        self._found.clear()
