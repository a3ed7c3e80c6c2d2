"""A diagnostic: one thing to tell the author of a playbook, with its place, its reason and its fix.

Rendering for people and machines is the CLI's; which diagnostics exist is decided by the files in `rules/`.
Tested in tests/unit/dsl/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from noetl.dsl.nodes import Position, Source

Severity = Literal["error", "warning", "hint"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "hint")


class Diagnostic(Struct, frozen=True):
    """What, where, why it matters and what to do; sorts by place, then by severity and code."""

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
    """Sort diagnostics by place and drop exact repetitions."""
    return tuple(sorted(set(diagnostics), key=Diagnostic.sort_key))


def span(source: Source, start: int, end: int) -> tuple[Position, Position]:
    """Give the positions of a range, kept to its first line so that a caret can be drawn under it."""
    first = source.position(start)
    newline = source.text.find("\n", start, max(end, start))
    return first, source.position(newline if newline >= 0 else max(end, start))


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Give the known name that was most likely meant, or None when nothing is close."""
    known = list(dict.fromkeys(candidates))
    by_folded = {candidate.casefold().replace("-", "_"): candidate for candidate in known}
    folded = name.casefold().replace("-", "_")
    if folded in by_folded:
        return by_folded[folded]
    found = get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Give ` Did you mean 'x'?`, or an empty text when nothing is close."""
    found = nearest(name, candidates)
    return f" Did you mean '{found}'?" if found and found != name else ""
