"""Formats an open playbook with one edit that leaves alone what is well laid out at both ends.

The layout itself is `noetl.dsl.layout`. Tested in tests/unit/lsp/test_formatting.py.
"""

from __future__ import annotations

from itertools import takewhile

from noetl.dsl.layout import format_text
from noetl.lsp.reading import Reading
from noetl.lsp.rename import Edit


def formatted(reading: Reading) -> tuple[Edit, ...]:
    """Give the edit that lays the text out, or none where it is laid out or cannot be."""
    before = reading.text
    after = format_text(before, reading.file)
    if "\r\n" in before and "\r\n" not in after:
        after = after.replace("\n", "\r\n")
    if after == before:
        return ()
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    return (Edit(head, len(before) - tail, after[head : len(after) - tail]),)


def _shared(one: str, other: str) -> int:
    """Count the characters that two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
