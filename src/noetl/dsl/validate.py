"""Checks a playbook against every rule in one pass and gives all that was found, in order.

Files are read by the caller; rules are in `rules/`. Tested in tests/unit/dsl/test_rules.py and over the corpus in
tests/corpus.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from noetl.dsl.diagnostic import Diagnostic, in_order, span
from noetl.dsl.kinds import Kinds
from noetl.dsl.parse import parse
from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules import RULES
from noetl.dsl.subject import Subject

_TOLERATED = frozenset({"NOE101", "NOE102", "NOE502"})


def validate(
    text: str | bytes,
    file: str,
    kinds: Kinds,
    *,
    catalog: Collection[str] | None = None,
    tolerant: bool = False,
) -> tuple[Diagnostic, ...]:
    """Check one playbook; `tolerant` turns unknown keys into warnings."""
    return examine(Subject(parse(text, file), kinds, catalog), tolerant=tolerant)


def examine(subject: Subject, *, tolerant: bool = False) -> tuple[Diagnostic, ...]:
    """Check a document that was read already."""
    return in_order(_diagnostics(subject, tolerant))


def _diagnostics(subject: Subject, tolerant: bool) -> Iterator[Diagnostic]:
    for rule in RULES:
        # Of a text that breaks off, what is missing in the part before the break may stand behind it.
        if rule.group != "reading" and (subject.root is None or not subject.document.whole):
            continue
        for found in rule.check(subject):
            yield _diagnostic(subject, rule, found, tolerant)


def _diagnostic(subject: Subject, rule: Rule, found: Found, tolerant: bool) -> Diagnostic:
    severity = found.severity or rule.severity
    if tolerant and rule.code in _TOLERATED:
        severity = "warning"
    start, end = span(subject.source, found.start, found.end)
    path = subject.path(found.start)
    return Diagnostic(rule.code, severity, found.message, found.fix, subject.source.file, start, end, path)
