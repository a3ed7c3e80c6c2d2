"""Open documents of an editor, analysed lazily and once per version.

Tested in tests/unit/lsp/test_open_documents.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

from noetl.authoring.analysis.reading import Reading, is_playbook
from noetl.authoring.positions import Encoding, Lines
from noetl.dsl.grammar.kinds import Kinds
from noetl.testing.cases.files.read import SUFFIXES, TestFile, read_tests

Catalogs = Callable[[str], Collection[str] | None]
Cases = Callable[[str, str], TestFile]  # URI and text of a test file → its content and problems


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
        """Analysis of the document, or None if it is not a playbook."""
        if self.is_tests or not is_playbook(self.text, self.language):
            return None
        return Reading(self.text, self.uri, self._known.kinds, self._known.catalog(self.uri))

    @property
    def is_tests(self) -> bool:
        """Whether the file name marks a test file."""
        return self.uri.endswith(SUFFIXES)

    @cached_property
    def tests(self) -> TestFile | None:
        """Content and problems of a test file, or None."""
        return self._known.tests(self.uri, self.text) if self.is_tests else None

    def changed(self, text: str, version: int | None) -> Opened:
        return Opened(self.uri, text, self.language, version, self.encoding, self._known)


class Known:
    """Context of open documents: tool kinds, and playbooks they may call."""

    def __init__(self, kinds: Kinds, catalogs: Catalogs | None = None, cases: Cases | None = None) -> None:
        self.kinds = kinds
        self._catalogs = catalogs
        self._cases = cases
        self._catalog_cache: dict[str, Collection[str] | None] = {}

    def catalog(self, uri: str) -> Collection[str] | None:
        """Return the playbooks that a document may call; cached until `forget`."""
        if uri not in self._catalog_cache:
            self._catalog_cache[uri] = self._catalogs(uri) if self._catalogs else None
        return self._catalog_cache[uri]

    def tests(self, uri: str, text: str) -> TestFile:
        """Read a test file, by itself if its playbook cannot be looked up."""
        if self._cases is not None:
            return self._cases(uri, text)
        return read_tests(text, uri, uri.rpartition("/")[2])

    def forget(self) -> None:
        """Drop the cache, because a file was saved."""
        self._catalog_cache.clear()
