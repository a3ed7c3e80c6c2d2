"""Definition and references.

Tested in tests/unit/authoring/features/test_definition.py.
"""

from __future__ import annotations

from noetl.authoring.analysis.occurrences import Occurrence, Thing
from noetl.authoring.analysis.reading import Reading


def occurrences_at(reading: Reading, offset: int) -> tuple[Occurrence, ...]:
    """Return the mentions that cover an offset, the shortest first."""
    found = (one for one in reading.occurrences if one.start <= offset <= one.end)
    return tuple(sorted(found, key=lambda one: (one.end - one.start, not one.spelled)))


def definitions(reading: Reading, offset: int) -> tuple[tuple[int, int], ...]:
    """Return the definitions of the thing at an offset; a `ctx` key may have several."""
    wanted = [one.thing for one in occurrences_at(reading, offset) if not one.defines] or _things(reading, offset)
    return _ranges(reading, wanted[:1], definitions_only=True)


def references(reading: Reading, offset: int, *, definitions_too: bool = True) -> tuple[tuple[int, int], ...]:
    """Return the ranges of all mentions of the thing at an offset."""
    found = _ranges(reading, _things(reading, offset)[:1], definitions_only=False)
    if definitions_too:
        return found
    defined = set(definitions(reading, offset))
    return tuple(one for one in found if one not in defined)


def _things(reading: Reading, offset: int) -> list[Thing]:
    return [one.thing for one in occurrences_at(reading, offset)]


def _ranges(reading: Reading, things: list[Thing], *, definitions_only: bool) -> tuple[tuple[int, int], ...]:
    found = (one for one in reading.occurrences if one.thing in things)
    return tuple(dict.fromkeys((one.start, one.end) for one in found if one.defines or not definitions_only))
