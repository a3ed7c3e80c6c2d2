"""Document as the features see it: parsed, or salvaged while it is incomplete.

Diagnostics always come from the parser. Tested in tests/unit/authoring/analysis/test_reading.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from typing import Final

from noetl.authoring.analysis.occurrences import Occurrence, occurrences
from noetl.authoring.analysis.salvage import salvage
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.uses import Unavailable
from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.reading.nodes import Rewritten, Scalar
from noetl.dsl.reading.parse import Document, parse
from noetl.dsl.reading.source_map import locate, offsets
from noetl.dsl.validate import examine

_PLAYBOOK: Final = re.compile(r"""["']?\bapiVersion["']?\s*:\s*["']?noetl\b""")
_CURSOR: Final = "Qcursor"
LANGUAGE: Final = "noetl-playbook"


def is_playbook(text: str, language: str = "") -> bool:
    """Whether the editor's language id or the text marks a playbook."""
    return language == LANGUAGE or _PLAYBOOK.search(text) is not None


class Reading:
    def __init__(
        self,
        text: str,
        file: str,
        kinds: Kinds,
        catalog: Collection[str] | None = None,
        unavailable: Unavailable | None = None,
    ) -> None:
        self.text = text.removeprefix("\ufeff")
        self.file = file
        self.exact = CheckContext(parse(text, file), kinds, catalog, unavailable)

    @property
    def is_whole(self) -> bool:
        """Whether the text was parsed to its end without problems."""
        document = self.exact.document
        return self.exact.root is not None and all(problem.kind == "legacy-boolean" for problem in document.problems)

    @cached_property
    def subject(self) -> CheckContext:
        """Analysis of the document, salvaged if it cannot be parsed."""
        document = self.exact.document
        if self.exact.root is not None and document.whole:
            return self.exact
        source = document.source
        return CheckContext(Document(source, salvage(source.text), ()), self.exact.kinds, self.exact.catalog)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return examine(self.exact)

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        return occurrences(self.subject)

    def span(self, diagnostic: Diagnostic) -> tuple[int, int]:
        """Return the range of a diagnostic as offsets."""
        source = self.exact.source
        return source.offset(diagnostic.start), source.offset(diagnostic.end)

    def with_text(self, text: str) -> Reading:
        return Reading(text, self.file, self.exact.kinds, self.exact.catalog, self.exact.unavailable)

    def marked(self, offset: int) -> tuple[Reading, str]:
        """Return the document with a marker word at the cursor, and the marker."""
        mark = _CURSOR
        while mark in self.text:
            mark += "q"
        return self.with_text(f"{self.text[:offset]}{mark}{self.text[offset:]}"), mark

    def sites_at(self, offset: int) -> tuple[TemplateSite, ...]:
        """Return the templates that cover an offset; a shared one once per use."""
        return tuple(site for site in self.subject.sites if site.node.start <= offset <= site.node.end)

    def step_at(self, offset: int) -> str | None:
        """Return the name of the step that covers an offset."""
        for step in self.subject.playbook.workflow:
            if step.at is not None and step.at.start <= offset <= step.at.end:
                return step.name
        return None

    def inside(self, scalar: Scalar, offset: int) -> int | None:
        """Convert a source offset to one in a scalar's text; None for quotes and folds."""
        if isinstance(scalar, Rewritten):
            return None
        source = self.subject.source
        places = offsets(source, scalar)
        if len(places) == len(scalar.text):
            try:
                return places.index(offset)
            except ValueError:
                pass
        return len(scalar.text) if offset == locate(source, scalar, len(scalar.text)) else None
