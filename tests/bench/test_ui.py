"""The measures of the web UI, small, and the table of their numbers."""

from __future__ import annotations

import pytest

from bench.screen import BUDGETS, Measured, table
from bench.ui import main
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


def test_a_budget_is_a_most_or_a_least() -> None:
    assert BUDGETS["list"].holds(300)
    assert not BUDGETS["list"].holds(301)
    assert BUDGETS["scrub"].holds(30)
    assert not BUDGETS["scrub"].holds(29.9)
