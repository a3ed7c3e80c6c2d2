"""Offers the edit that a diagnostic asks for, where it names one: the name that was probably meant.

An edit is offered only when it takes that diagnostic away and brings no new one, so it is tried first.
Tested in tests/unit/lsp/test_fixes.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from noetl.dsl.diagnostic import Diagnostic
from noetl.lsp.reading import Reading
from noetl.lsp.rename import Edit, applied

_MEANT: Final = re.compile(r"Did you mean '([^']+)'\?")

_EDGE: Final = "route_edge:"


class Fix(NamedTuple):
    """An edit with a title, and the diagnostic it is for."""

    title: str
    edit: Edit
    diagnostic: Diagnostic


def fixes(reading: Reading, start: int, end: int) -> Iterator[Fix]:
    """Give the fixes of the diagnostics that touch a range."""
    for diagnostic in reading.diagnostics:
        first, last = reading.span(diagnostic)
        if first <= end and start <= last:
            tries = (fix for fix in _tries(reading, diagnostic, first, last) if _helps(reading, fix))
            yield from islice(tries, 1)


def _tries(reading: Reading, diagnostic: Diagnostic, start: int, end: int) -> Iterator[Fix]:
    found = _MEANT.search(diagnostic.message)
    if found:
        yield Fix(f"Write '{found[1]}'", _replaced(reading.text, start, end, found[1]), diagnostic)
    if reading.text.startswith("{{", start) and not reading.is_whole:
        line = reading.text.find("\n", start)
        for last in (end, line if line >= 0 else len(reading.text)):
            written = reading.text[start:last].rstrip()
            quote = "'" if '"' in written else '"'
            if quote not in written and "\\" not in written:
                edit = Edit(start, start + len(written), f"{quote}{written}{quote}")
                yield Fix("Put the template in quotes", edit, diagnostic)


def _replaced(text: str, start: int, end: int, meant: str) -> Edit:
    """Replace the range; quotes around it, and what is no part of the name, stay."""
    written = text[start:end]
    if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
        start, end, written = start + 1, end - 1, written[1:-1]
    return Edit(start + (len(_EDGE) if written.startswith(_EDGE) else 0), end, meant)


def _helps(reading: Reading, fix: Fix) -> bool:
    """Tell whether a fix takes its diagnostic away; of a text that could not be read, more may come to light."""
    after = reading.with_text(applied(reading.text, (fix.edit,)))
    before = Counter(one.code for one in reading.diagnostics)
    left = Counter(one.code for one in after.diagnostics)
    return left[fix.diagnostic.code] < before[fix.diagnostic.code] and (
        not reading.exact.document.whole or not left - before
    )
