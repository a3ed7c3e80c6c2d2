"""Format an open playbook with one minimal edit.

The formatter is `noetl.dsl.formatter`. Tested in tests/unit/authoring/features/test_formatting.py.
"""

from __future__ import annotations

from itertools import takewhile

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.features.rename import Edit
from noetl.dsl.formatter import format_text


def format_edits(reading: Reading) -> tuple[Edit, ...]:
    """Return the edit that formats the text; none if it is format_edits or cannot be."""
    before = reading.text
    after = format_text(before, reading.file)
    if "\r\n" in before and "\r\n" not in after:
        after = after.replace("\n", "\r\n")
    return edits_between(before, after)


def edits_between(before: str, after: str) -> tuple[Edit, ...]:
    """Return the smallest edit that makes one text another; none if they are equal."""
    if after == before:
        return ()
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    return (Edit(head, len(before) - tail, after[head : len(after) - tail]),)


def _shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
