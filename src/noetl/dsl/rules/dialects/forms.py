"""One notice for the older forms of a file, and those that cannot be lowered.

Tested in tests/unit/dsl/rules/test_dialects.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Check, Finding, at
from noetl.dsl.dialects.lowering.lowerings import Dialect
from noetl.dsl.grammar.titles import where
from noetl.dsl.reading.nodes import MapNode
from noetl.dsl.reading.ranges import Ranges

ORDINALS: Final[dict[Dialect, str]] = {"v1": "first", "v2": "second"}


def dialect_check(dialect: Dialect) -> Check:
    """Return a check that reports all lowered forms once, for the oldest dialect."""

    def check(subject: CheckContext) -> Iterator[Finding]:
        changes = subject.lowered.changes
        dialects = subject.lowered.dialects
        if not changes or dialects[0] != dialect:
            return
        first = min(changes, key=lambda change: change.at.start)
        of = " and ".join(f"the {ORDINALS[one]}" for one in dialects)
        places = "1 place" if len(changes) == 1 else f"{len(changes)} places"
        names = ", ".join(dict.fromkeys(change.lowering.name for change in changes))
        yield at(
            first.at,
            f"The file has forms of {of} dialect in {places} ({names}). They run as they are.",
            "To write them in today's form, run `noetl upgrade FILE`.",
        )

    return check


def refused(subject: CheckContext) -> Iterator[Finding]:
    """Yield every older form without a canonical equivalent."""
    known = {id(refusal.key) for refusal in subject.lowered.refusals}
    inside = Ranges((refusal.within.start, refusal.within.end) for refusal in subject.lowered.refusals)
    owners = {id(finding.owner): finding.owner for finding in subject.shape if finding.form}
    refused = {
        number
        for number, owner in owners.items()
        if isinstance(owner, MapNode) and any(id(entry.key) in known for entry in owner)
    }
    for refusal in subject.lowered.refusals:
        yield at(refusal.at, refusal.reason, refusal.fix)
    for form, finding in ((finding.form, finding) for finding in subject.shape):
        # Another form that is reported may explain this one.
        if form and not inside.cover(finding.node.start) and id(finding.owner) not in refused:
            place = f"'{form.key}' {where(finding.level)}"
            message = f"{place} is a form of the {ORDINALS[form.dialect]} dialect, where it {form.meant}."
            yield at(finding.node, message, f"Write {form.canonical}.")
