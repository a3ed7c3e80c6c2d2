"""A diagnostic: one message for a playbook's author, with position and fix.

The files in `rules/` define which diagnostics exist; the CLI renders them. Tested in tests/unit/dsl/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from noetl.dsl.reading.nodes import Position, Source

Severity = Literal["error", "warning", "hint"]
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
    """Return the known name closest to `name`, or None."""
    known = list(dict.fromkeys(candidates))
    by_folded = {candidate.casefold().replace("-", "_"): candidate for candidate in known}
    folded = name.casefold().replace("-", "_")
    if folded in by_folded:
        return by_folded[folded]
    close = get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?`, or an empty text when no name is close."""
    meant = nearest(name, candidates)
    return f" Did you mean '{meant}'?" if meant and meant != name else ""
