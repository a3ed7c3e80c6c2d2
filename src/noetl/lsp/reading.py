"""A text as the editor's features see it: read exactly where it can be, salvaged where it is still being typed.

Diagnostics always come from the exact reading. Tested in tests/unit/lsp/test_reading.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from typing import Final

from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.kinds import Kinds
from noetl.dsl.locate import locate, offsets
from noetl.dsl.nodes import Scalar
from noetl.dsl.parse import Document, parse
from noetl.dsl.sites import Site
from noetl.dsl.subject import Subject
from noetl.dsl.validate import examine
from noetl.lsp.occurrences import occurrences
from noetl.lsp.salvage import salvage
from noetl.lsp.things import Occurrence

_PLAYBOOK: Final = re.compile(r"""["']?\bapiVersion["']?\s*:\s*["']?noetl\b""")
_CURSOR: Final = "Qcursor"
LANGUAGE: Final = "noetl-playbook"


def is_playbook(text: str, language: str = "") -> bool:
    """Tell whether a document is a playbook: the editor says so, or the text names the language's version."""
    return language == LANGUAGE or _PLAYBOOK.search(text) is not None


class Reading:
    """One version of a document."""

    def __init__(self, text: str, file: str, kinds: Kinds, catalog: Collection[str] | None = None) -> None:
        self.text = text.removeprefix("\ufeff")
        self.file = file
        self.exact = Subject(parse(text, file), kinds, catalog)

    @property
    def is_whole(self) -> bool:
        """Tell whether the text could be read to its end, without doubt about any part of it."""
        document = self.exact.document
        return self.exact.root is not None and all(problem.kind == "legacy-boolean" for problem in document.problems)

    @cached_property
    def subject(self) -> Subject:
        """What is known of the document, also while it cannot be parsed."""
        document = self.exact.document
        if self.exact.root is not None and document.whole:
            return self.exact
        source = document.source
        return Subject(Document(source, salvage(source.text), ()), self.exact.kinds, self.exact.catalog)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return examine(self.exact)

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Every mention of what the playbook names."""
        return occurrences(self.subject)

    def span(self, diagnostic: Diagnostic) -> tuple[int, int]:
        """Give the range of a diagnostic as offsets."""
        source = self.exact.source
        return source.offset(diagnostic.start), source.offset(diagnostic.end)

    def with_text(self, text: str) -> Reading:
        return Reading(text, self.file, self.exact.kinds, self.exact.catalog)

    def marked(self, offset: int) -> tuple[Reading, str]:
        """Give the document with a word in the place of the cursor, so that there is something to find, and that word."""
        mark = _CURSOR
        while mark in self.text:
            mark += "q"
        return self.with_text(f"{self.text[:offset]}{mark}{self.text[offset:]}"), mark

    def sites_at(self, offset: int) -> tuple[Site, ...]:
        """Give the templates that cover an offset; a shared one once for each place that it serves."""
        return tuple(site for site in self.subject.sites if site.node.start <= offset <= site.node.end)

    def step_at(self, offset: int) -> str | None:
        """Give the name of the step that covers an offset."""
        for step in self.subject.playbook.workflow:
            if step.at is not None and step.at.start <= offset <= step.at.end:
                return step.name
        return None

    def inside(self, scalar: Scalar, offset: int) -> int | None:
        """Give the offset in a scalar's text of an offset in the source; None for its quotes and what folding removed."""
        source = self.subject.source
        places = offsets(source, scalar)
        if len(places) == len(scalar.text):
            try:
                return places.index(offset)
            except ValueError:
                pass
        return len(scalar.text) if offset == locate(source, scalar, len(scalar.text)) else None
