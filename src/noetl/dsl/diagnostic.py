"""A diagnostic: one message for a playbook's author, with position and fix.

The files in `rules/` define which diagnostics exist; the CLI renders them. Tested in tests/unit/dsl/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Literal

from msgspec import Struct

from noetl.dsl.reading.nodes import Position, Source

Severity = Literal["error", "warning", "hint"]
_LONGEST_NAME = 100
_MOST_COMPARED = 200
_MOST_SUGGESTIONS = 20
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "hint")


class Diagnostic(Struct, frozen=True):
    """One problem in a file; sorts by position, then by severity and code."""

    code: str
    severity: Severity
    message: str
    fix: str
    file: str
    start: Position
    end: Position
    path: str = ""  # where in the playbook, e.g. workflow[2].tool.url

    @property
    def line(self) -> int:
        return self.start.line

    @property
    def column(self) -> int:
        return self.start.column

    def sort_key(self) -> tuple[str, Position, int, str, str]:
        return (self.file, self.start, SEVERITIES.index(self.severity), self.code, self.message)


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort diagnostics by position and drop duplicates."""
    return tuple(sorted(set(diagnostics), key=Diagnostic.sort_key))


def span(source: Source, start: int, end: int) -> tuple[Position, Position]:
    """Return the positions of a range, cut to its first line."""
    first = source.position(start)
    newline = source.text.find("\n", start, max(end, start))
    return first, source.position(newline if newline >= 0 else max(end, start))


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the known name closest to `name`, or None; of many, some are compared."""
    if len(name) > _LONGEST_NAME:
        return None
    known: Collection[str] = dict.fromkeys(candidates)
    if len(known) > _MOST_COMPARED:
        known = _alike(name, known)
    by_folded = {folded_name(candidate): candidate for candidate in known if len(candidate) <= _LONGEST_NAME}
    folded = folded_name(name)
    if folded in by_folded:
        return by_folded[folded]
    close = get_close_matches(folded, list(islice(by_folded, _MOST_COMPARED)), n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def _alike(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that begin like `name` and are about as long."""
    first, shortest, longest = name[:1].casefold(), len(name) - 2, len(name) + 2
    return [one for one in known if shortest <= len(one) <= longest and one[:1].casefold() == first]


def folded_name(name: str) -> str:
    """Return a name without the differences that people do not notice."""
    return name.casefold().replace("-", "_")


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?`, or an empty text when no name is close."""
    return Suggestions().did_you_mean(name, candidates)


Candidates = Iterable[str] | Callable[[], Iterable[str]]  # a function is called only for a lookup


class Suggestions:
    """Suggestions for the names of one document: only the first few are looked up.

    A comparison with every known name is slow, and a document can have 100,000 unknown names.
    """

    def __init__(self) -> None:
        self._left = _MOST_SUGGESTIONS

    def nearest(self, name: str, candidates: Candidates) -> str | None:
        """Return the known name closest to `name`, or None."""
        if not self._left:
            return None
        self._left -= 1
        return nearest(name, candidates() if callable(candidates) else candidates)

    def did_you_mean(self, name: str, candidates: Candidates) -> str:
        """Return ` Did you mean 'x'?`, or an empty text when no name is close."""
        meant = self.nearest(name, candidates)
        return f" Did you mean '{meant}'?" if meant and meant != name else ""
