"""Quick fixes: the edit that a diagnostic suggests.

An edit is offered only if it removes the diagnostic and adds no other. Tested in tests/unit/authoring/features/test_fixes.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.features.formatting import edits_between
from noetl.authoring.features.rename import Edit, apply_edits
from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.upgrade import upgrade

_MEANT: Final = re.compile(r"Did you mean '([^']+)'\?")

# A wrong name hides a part of the net, so its diagnostics appear only after the fix.
_OF_THE_NET: Final = "NOE4"
_OLDER_DIALECTS: Final = ("NOE801", "NOE802")
_EDGE: Final = "route_edge:"


class Fix(NamedTuple):
    """An edit with its title and its diagnostic."""

    title: str
    edit: Edit
    diagnostic: Diagnostic


def fixes(reading: Reading, start: int, end: int) -> Iterator[Fix]:
    """Yield the fixes of the diagnostics that touch a range."""
    for diagnostic in reading.diagnostics:
        first, last = reading.span(diagnostic)
        if first <= end and start <= last and (fix := fix_of(reading, diagnostic)) is not None:
            yield fix


def fix_of(reading: Reading, diagnostic: Diagnostic) -> Fix | None:
    """Return the fix of a diagnostic, or None; each candidate is checked."""
    tries = _candidates(reading, diagnostic, *reading.span(diagnostic))
    return next((fix for fix in tries if _helps(reading, fix)), None)


def _candidates(reading: Reading, diagnostic: Diagnostic, start: int, end: int) -> Iterator[Fix]:
    if diagnostic.code in _OLDER_DIALECTS:
        yield from _upgrades(reading, diagnostic)
        return
    found = _MEANT.search(diagnostic.message)
    if found:
        yield Fix(f"Write '{found[1]}'", _replacement(reading.text, start, end, found[1]), diagnostic)
    if reading.text.startswith("{{", start) and not reading.is_whole:
        line = reading.text.find("\n", start)
        for last in (end, line if line >= 0 else len(reading.text)):
            written = reading.text[start:last].rstrip()
            quote = "'" if '"' in written else '"'
            if quote not in written and "\\" not in written:
                edit = Edit(start, start + len(written), f"{quote}{written}{quote}")
                yield Fix("Put the template in quotes", edit, diagnostic)


def _upgrades(reading: Reading, diagnostic: Diagnostic) -> Iterator[Fix]:
    made = upgrade(reading.text, reading.file)
    for edit in edits_between(reading.text, made.text) if made.is_done else ():
        yield Fix("Upgrade the playbook to today's form", edit, diagnostic)


def _replacement(text: str, start: int, end: int, meant: str) -> Edit:
    written = text[start:end]
    if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
        start, end, written = start + 1, end - 1, written[1:-1]
    return Edit(start + (len(_EDGE) if written.startswith(_EDGE) else 0), end, meant)


def _helps(reading: Reading, fix: Fix) -> bool:
    """Whether a fix removes its diagnostic and adds none, except of the net."""
    after = reading.with_text(apply_edits(reading.text, (fix.edit,)))
    before = Counter(one.code for one in reading.diagnostics)
    left = Counter(one.code for one in after.diagnostics)
    harmless = not reading.exact.document.whole or all(code.startswith(_OF_THE_NET) for code in left - before)
    return harmless and left[fix.diagnostic.code] < before[fix.diagnostic.code]
