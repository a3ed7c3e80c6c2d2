"""Hostile documents: checked in work that grows with their size, and bounded."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest

from noetl.dsl import diagnostic
from noetl.dsl.validate import MOST_OF_A_RULE
from noetl.expr import template
from noetl.wire.answers import Diagnosed
from noetl.wiring.checks import check
from tests.corpus.hostile import ALL, Make

SMALL, TIMES = 4_000, 4
MOST_GROWTH = 6  # of the calls, for four times the text; work that grows with the square has 16
UNIT = 30_000  # calls of a check that are not worth comparing


def calls_of(function: Callable[[], object]) -> int:
    """Count the calls of functions, without those that compare names.

    The number of comparisons has a bound of its own, which small documents do not reach.
    """
    count = 0

    def counted(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call") and frame.f_code.co_filename != difflib.__file__

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def test_there_are_enough_documents() -> None:
    assert len(ALL) >= 150
    assert len({make(SMALL) for make in ALL.values()}) == len(ALL)


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_work_and_answer_are_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = make(SMALL).encode(), make(SMALL * TIMES).encode()
    growth = max(1, len(large) / len(small) / TIMES)  # some documents cannot have any size
    check(make(SMALL // 2).encode())  # what is loaded on first use does not count
    # Other documents may have the same templates: what was compiled for them must not count either.
    monkeypatch.setattr(template, "_cache", template._Cache(template._KEPT_BYTES))
    calls = calls_of(lambda: check(small))
    monkeypatch.setattr(template, "_cache", template._Cache(template._KEPT_BYTES))
    found: list[Diagnosed] = []
    grown = calls_of(lambda: found.extend(check(large).diagnostics))
    assert grown <= max(MOST_GROWTH * growth * calls, UNIT), f"{calls} calls, then {grown}"
    codes = Counter(one.code for one in found)
    assert all(count <= MOST_OF_A_RULE + 1 for count in codes.values())
    assert all(len(text) <= 2_001 for one in found for text in (one.message, one.fix, one.path or ""))


def test_what_is_left_out_is_counted() -> None:
    found = check(ALL["unknown keys at the root"](SMALL * TIMES).encode()).diagnostics
    unknown = [one for one in found if one.code == "NOE101"]
    assert len(unknown) == MOST_OF_A_RULE + 1
    keys = ALL["unknown keys at the root"](SMALL * TIMES).count("unknown_key_")
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
