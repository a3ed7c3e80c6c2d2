"""Hostile documents: checked in work that grows with their size, and bounded."""

from __future__ import annotations

import cProfile
import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from noetl.dsl import diagnostic
from noetl.dsl.validate import MOST_OF_A_RULE
from noetl.expr import template
from noetl.wire.answers import Diagnosed
from noetl.wiring.checks import check
from tests.corpus.hostile import ALL, Make

SMALL, TIMES = 2_000, 4
CHAOS = 10  # times the text, under chaos
MOST_GROWTH = 6  # of the calls, for four times the text; work that grows with the square has 16
UNIT = 15_000  # calls of a check that are not worth comparing


def calls_of(function: Callable[[], object]) -> int:
    """Count the calls of functions, without those that compare names.

    The number of comparisons has a bound of its own, which small documents do not reach.
    """
    profile = cProfile.Profile()
    profile.runcall(function)
    return sum(map(_counted, profile.getstats()))


def _counted(entry: Any) -> int:
    """Return how many calls an entry of a profile stands for."""
    if getattr(entry.code, "co_filename", "") != difflib.__file__:
        return int(entry.callcount)
    return -sum(
        int(call.callcount) for call in entry.calls or () if isinstance(call.code, str)
    )  # of built-in functions


def test_there_are_enough_documents() -> None:
    assert len(ALL) >= 150
    assert len({make(SMALL) for make in ALL.values()}) == len(ALL)


def documents() -> list[Any]:
    """Return every document small and, under chaos, large."""
    large = {"aliased steps"}  # what aliases stand for has a bound, and small ones do not reach it
    found = [pytest.param(make, 1, id=name) for name, make in ALL.items() if name not in large]
    for name, make in ALL.items():
        marks = [] if name in large else [pytest.mark.chaos]
        found.append(pytest.param(make, CHAOS, id=f"large {name}", marks=marks))
    return found


@pytest.mark.parametrize(("make", "scale"), documents())
def test_work_and_answer_are_bounded(make: Make, scale: int, monkeypatch: pytest.MonkeyPatch) -> None:
    size = SMALL * scale
    small, large = make(size).encode(), make(size * TIMES).encode()
    growth = max(1, len(large) / len(small) / TIMES)  # some documents cannot have any size
    check(make(size // 2).encode())  # what is loaded on first use does not count
    # Other documents may have the same templates: what was compiled for them must not count either.
    monkeypatch.setattr(template, "_cache", template._Cache(template._KEPT_BYTES))
    calls = calls_of(lambda: check(small))
    monkeypatch.setattr(template, "_cache", template._Cache(template._KEPT_BYTES))
    found: list[Diagnosed] = []
    grown = calls_of(lambda: found.extend(check(large).diagnostics))
    assert grown <= max(MOST_GROWTH * growth * calls, UNIT * scale), f"{calls} calls, then {grown}"
    codes = Counter(one.code for one in found)
    assert all(count <= MOST_OF_A_RULE + 1 for count in codes.values())
    assert all(len(text) <= 2_001 for one in found for text in (one.message, one.fix, one.path or ""))


def test_what_is_left_out_is_counted() -> None:
    text = ALL["unknown keys at the root"](SMALL * CHAOS * TIMES)
    found = check(text.encode()).diagnostics
    unknown = [one for one in found if one.code == "NOE101"]
    assert len(unknown) == MOST_OF_A_RULE + 1
    keys = text.count("unknown_key_")
    assert [one.message for one in unknown if one.message.startswith(f"And {keys - MOST_OF_A_RULE:,} more of NOE101")]


def test_only_the_first_unknown_names_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def find(word: str, known: Sequence[str], **more: Any) -> list[str]:
        compared.append(len(known))
        return difflib.get_close_matches(word, known, **more)

    monkeypatch.setattr(diagnostic, "get_close_matches", find)
    check(ALL["unknown names beside many known"](100_000).encode())
    assert 0 < len(compared) <= 20
    assert max(compared) <= 200
