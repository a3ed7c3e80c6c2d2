"""The measures of the web UI, small, and the table of their numbers."""

from __future__ import annotations

import pytest

from bench.screen import BUDGETS, Measured, table
from bench.ui import growth, main
from tests.ui.browsing import needs_a_browser

pytestmark = pytest.mark.xdist_group("screen")


@needs_a_browser
def test_a_small_run_measures_what_it_is_asked_for() -> None:
    found = main(["--only", "first_paint", "--only", "list", "--only", "live", "--rows", "2000", "--rounds", "1"])
    assert found.missing == {}
    assert set(found.numbers) == {"first_paint", "script", "live", "list"}
    assert all(value > 0 for value in found.numbers.values())
    assert {"first page", "rare tag", "failed, next page", "screen"} <= set(found.parts["list"])


def test_a_table_tells_numbers_budgets_and_what_is_missing() -> None:
    text = table(Measured("2026-11-18", 0.4, {"first_paint": 412.0, "scrub": 58.3}, missing={"heat": "no such pane"}))
    assert "| first contentful paint, empty cache | 412 ms | ≤ 1,000 ms |" in text
    assert "| scrubbing 10,000 events | 58 frames/s | ≥ 30 frames/s |" in text
    assert "not measured: no such pane" in text


def test_a_part_of_a_run_leaves_the_other_numbers_as_they_are() -> None:
    before = Measured("2026-11-18", 0.5, {"first_paint": 412.0, "heat": 738.2}, {"list": {"tag": 62.8}})
    made = Measured("2026-11-19", 9.0, {"heap": 9.1}, {"heap": {"0": 9.1}}, {"heat": "no such pane"}).over(before)
    assert (made.date, made.load) == ("2026-11-18", 0.5)
    assert made.numbers == {"first_paint": 412.0, "heap": 9.1}
    assert set(made.parts) == {"list", "heap"}


def test_growth_is_of_the_last_third_over_the_first() -> None:
    assert growth([4.0, 7.0, 7.1, 7.0, 8.0, 7.2, 7.1, 7.0]) == pytest.approx(0)
    assert growth([4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]) == 4.0


def test_a_budget_is_a_most_or_a_least() -> None:
    assert BUDGETS["list"].holds(300)
    assert not BUDGETS["list"].holds(301)
    assert BUDGETS["scrub"].holds(30)
    assert not BUDGETS["scrub"].holds(29.9)
