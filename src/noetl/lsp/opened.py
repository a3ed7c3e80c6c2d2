"""The documents that an editor has open, each read once per version and only when somebody asks.

Tested in tests/unit/lsp/test_opened.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

from noetl.dsl.kinds import Kinds
from noetl.lsp.positions import Encoding, Lines
from noetl.lsp.reading import Reading, is_playbook
from noetl.testing.cases.read import SUFFIXES, TestFile, read_tests

Catalogs = Callable[[str], Collection[str] | None]
Cases = Callable[[str, str], TestFile]  # the address and the text of a file of tests → what it says, and what is wrong


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
        if self.is_tests or not is_playbook(self.text, self.language):
            return None
        return Reading(self.text, self.uri, self._known.kinds, self._known.catalog(self.uri))

    @property
    def is_tests(self) -> bool:
        """Tell whether the document is a file of tests, by its name."""
        return self.uri.endswith(SUFFIXES)

    @cached_property
    def tests(self) -> TestFile | None:
        """What a file of tests says, and what is wrong with it; None where it is none."""
        return self._known.tests(self.uri, self.text) if self.is_tests else None

    def changed(self, text: str, version: int | None) -> Opened:
        return Opened(self.uri, text, self.language, version, self.encoding, self._known)


class Known:
    """What there is besides the document: tool kinds, and other playbooks that it may call."""

    def __init__(self, kinds: Kinds, catalogs: Catalogs | None = None, cases: Cases | None = None) -> None:
        self.kinds = kinds
        self._catalogs = catalogs
        self._cases = cases
        self._found: dict[str, Collection[str] | None] = {}

    def catalog(self, uri: str) -> Collection[str] | None:
        """Give the playbooks that a document may call; looked for once, until `forget`."""
        if uri not in self._found:
            self._found[uri] = self._catalogs(uri) if self._catalogs else None
        return self._found[uri]

    def tests(self, uri: str, text: str) -> TestFile:
        """Read a file of tests; where nobody can look for its playbook, by itself."""
        if self._cases is not None:
            return self._cases(uri, text)
        return read_tests(text, uri, uri.rpartition("/")[2])

    def forget(self) -> None:
        """Look again at the next question: a file has been saved."""
        self._found.clear()
