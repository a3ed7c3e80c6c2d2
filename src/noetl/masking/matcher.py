"""Find any of many byte strings in one pass.

The time grows with the text, not with the number of values: Aho-Corasick automata, which are built when they are first
needed. Values that were added lately have an automaton of their own, so that one more value does not build the large one
again. Tested in tests/unit/masking/test_matcher.py; measured by bench/masking.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

_FEW: Final = 2_048  # byte strings of the small automaton


class Matcher:
    """Byte strings, and the places where they occur."""

    def __init__(self) -> None:
        self._many: dict[bytes, None] = {}
        self._few: dict[bytes, None] = {}
        self._built: dict[int, BytesAhoCorasick] = {}

    def __bool__(self) -> bool:
        return bool(self._many or self._few)

    def replace(self, patterns: Iterable[bytes]) -> None:
        """Find these byte strings, and no others, from now on."""
        self._many, self._few, self._built = dict.fromkeys(patterns), {}, {}

    def add(self, patterns: Iterable[bytes]) -> None:
        """Find these byte strings too."""
        self._few |= dict.fromkeys(one for one in patterns if one not in self._many)
        self._built.pop(1, None)
        if len(self._few) > max(_FEW, len(self._many) // 4):
            self._many, self._few, self._built = self._many | self._few, {}, {}

    def finds(self, data: bytes) -> bool:
        """Return whether any byte string occurs."""
        return any(one.find_matches_as_indexes(data) for one in self._automata())

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return begin and end of each place, in order; places that overlap are one."""
        found = [match[1:] for one in self._automata() for match in one.find_matches_as_indexes(data)]
        found.sort()
        merged: list[tuple[int, int]] = []
        for begin, end in found:
            if merged and begin < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return merged

    def _automata(self) -> Iterator[BytesAhoCorasick]:
        for number, patterns in enumerate((self._many, self._few)):
            if patterns:
                if number not in self._built:
                    self._built[number] = _automaton(patterns)
                yield self._built[number]


def _automaton(patterns: Iterable[bytes]) -> BytesAhoCorasick:
    from ahocorasick_rs import BytesAhoCorasick, MatchKind  # only where something was resolved

    return BytesAhoCorasick(list(patterns), matchkind=MatchKind.LeftmostLongest)
