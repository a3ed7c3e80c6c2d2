"""Check a playbook against every rule and return the diagnostics, sorted.

The caller reads the file; the rules are in `rules/`. Tested in tests/unit/dsl/test_rules.py and tests/corpus.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from msgspec.structs import replace

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule
from noetl.dsl.checking.tolerate import without_unknown_keys
from noetl.dsl.checking.uses import Unavailable
from noetl.dsl.diagnostic import Diagnostic, in_order, span
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.reading.parse import parse
from noetl.dsl.rules import RULES

MOST_OF_A_RULE = 100  # diagnostics; one more says how many follow
_LONGEST = 2_000  # text of a diagnostic
_TOLERATED = frozenset({"NOE015", "NOE101", "NOE102", "NOE502"})


def validate(
    text: str | bytes,
    file: str,
    kinds: Kinds,
    *,
    catalog: Collection[str] | None = None,
    unavailable: Unavailable | None = None,
    tolerant: bool = False,
) -> tuple[Diagnostic, ...]:
    """Check the text of a playbook; `tolerant` makes unknown keys warnings."""
    subject = CheckContext(parse(text, file), kinds, catalog, unavailable)
    return tolerate(subject)[0] if tolerant else examine(subject)


def examine(subject: CheckContext, *, tolerant: bool = False) -> tuple[Diagnostic, ...]:
    """Check a parsed document."""
    return in_order(_diagnostics(subject, tolerant))


def tolerate(subject: CheckContext) -> tuple[tuple[Diagnostic, ...], CheckContext]:
    """Check a document with unknown keys as warnings; return it without them too."""
    found = examine(subject, tolerant=True)
    left = without_unknown_keys(subject)
    if left is subject or any(one.severity == "error" for one in found):
        return found, left
    known = {(one.code, one.start) for one in found}
    lacking = [one for one in examine(left) if one.severity == "error" and (one.code, one.start) not in known]
    return in_order((*found, *lacking)), left


def _diagnostics(subject: CheckContext, tolerant: bool) -> Iterator[Diagnostic]:
    for rule in RULES:
        # What is missing in the first part of a broken text may follow after the break.
        if rule.group != "reading" and (subject.root is None or not subject.document.whole):
            continue
        found = rule.check(subject)
        shown = [_diagnostic(subject, rule, finding, tolerant) for finding in islice(found, MOST_OF_A_RULE)]
        yield from shown
        more = sum(1 for _ in found)
        if more:
            yield replace(shown[-1], message=f"And {more:,} more of {rule.code}: {rule.summary}", fix=rule.fix)


def _diagnostic(subject: CheckContext, rule: Rule, finding: Finding, tolerant: bool) -> Diagnostic:
    severity = finding.severity or rule.severity
    if tolerant and rule.code in _TOLERATED:
        severity = "warning"
    start, end = span(subject.source, finding.start, finding.end)
    texts = (finding.message, finding.fix, subject.path(finding.start))
    message, fix, path = (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in texts)
    return Diagnostic(rule.code, severity, message, fix, subject.source.file, start, end, path)
