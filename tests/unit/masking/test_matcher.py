"""Many values are found in one pass; what is added later is found too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.masking import matcher
from noetl.masking.matcher import Matcher
from noetl.masking.values import MASK, KnownValues

WORDS = st.lists(st.text(alphabet="ab", min_size=1, max_size=5).map(str.encode), max_size=8)


@given(WORDS, WORDS, st.text(alphabet="abc", max_size=40).map(str.encode))
def test_every_place_of_every_word_is_within_a_span(first: list[bytes], more: list[bytes], data: bytes) -> None:
    found = Matcher()
    found.replace(first)
    found.add(more)
    spans = found.spans(data)
    assert bool(spans) == found.finds(data) == any(word in data for word in (*first, *more))
    kept = "".join("." if any(begin <= at < end for begin, end in spans) else chr(one) for at, one in enumerate(data))
    assert not any(word.decode() in part for word in (*first, *more) for part in kept.split("."))


class Counting:
    """An automaton that counts the bytes it has looked at."""

    read = 0
    built = 0

    def __init__(self, real: Any, patterns: list[bytes]) -> None:
        self._real = real
        Counting.built += len(patterns)

    def find_matches_as_indexes(self, data: bytes) -> Any:
        Counting.read += len(data)
        return self._real.find_matches_as_indexes(data)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    real = matcher._automaton

    def build(patterns: Iterable[bytes]) -> Any:
        listed = list(patterns)
        return Counting(real(listed), listed)

    monkeypatch.setattr(matcher, "_automaton", build)
    Counting.read = Counting.built = 0
    return Counting


@pytest.mark.parametrize("count", [1, 1_000])
@pytest.mark.parametrize("size", [80_000, 1_000_000, 20_000_000])
def test_a_text_is_read_at_most_twice_however_many_secrets_are_known(
    size: int, count: int, counting: type[Counting]
) -> None:
    known = KnownValues()
    for number in range(count):
        known.learn("api", {"token": f"secret-{number:06}-value"})
    text = "the quick brown fox " * (size // 20 - 1)
    masked = known.mask(f"{text}secret-000000-value {text}")
    assert masked == f"{text}{MASK} {text}"
    assert counting.read <= 2 * (2 * size + 20)


def test_learning_one_by_one_builds_few_automata(counting: type[Counting]) -> None:
    known = KnownValues()
    for number in range(600):
        known.learn("api", {"token": f"secret-{number:06}-value"})
        assert known.occurs(f"secret-{number:06}-value")
    each = counting.built / 600
    assert each < 6_000  # patterns; with one automaton it would be half of all, about 30 × 300
