"""Budgets of the web UI, and the numbers of a run. Measured by bench/ui.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from bench.results import FOLDER

PATH = FOLDER / "ui.json"


class Budget(msgspec.Struct, frozen=True):
    """What a measure must keep: at most, or at least, so much of a unit."""

    words: str
    limit: float
    unit: str = "ms"
    is_least: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.is_least else value <= self.limit


BUDGETS: Final[Mapping[str, Budget]] = {
    "script": Budget("JavaScript of the first screen, gzip", 350, "kB"),
    "first_paint": Budget("first contentful paint, empty cache", 1_000),
    "steps": Budget("execution of 500 steps: its graph answers", 1_000),
    "scrub": Budget("scrubbing 10,000 events", 30, "frames/s", is_least=True),
    "key": Budget("key press to paint, p95", 50),
    "live": Budget("event in the log to pixel, p95", 500),
    "heat": Budget("heat map of 100,000 items", 1_000),
    "timeline": Budget("timeline of 50,000 step-runs: a row for each step", 1_000),
    "heap": Budget("JavaScript heap after a collection, open for 30 min on a live loop or list, most", 150, "MB"),
    "growth": Budget("growth of that heap from the first third of the time to the last, larger one", 5, "MB"),
    "list": Budget("1,000,000 executions in PostgreSQL: slowest page or filter", 300),
}


class Measured(msgspec.Struct):
    """A run: when, under which load, the numbers, and the parts of some."""

    date: str
    load: float
    numbers: dict[str, float] = {}
    parts: dict[str, dict[str, float]] = {}
    missing: dict[str, str] = {}

    def over(self, before: Measured | None) -> Measured:
        """Return this run with the numbers of an earlier one for what was not measured.

        A run of a part keeps the date and the load of the whole one.
        """
        if before is None:
            return self
        of = self if set(self.numbers) >= set(before.numbers) - {"heap", "growth"} else before
        numbers = {name: value for name, value in before.numbers.items() if name not in self.missing}
        return Measured(of.date, of.load, numbers | self.numbers, before.parts | self.parts, self.missing)

    @classmethod
    def kept(cls) -> Measured | None:
        """Return the run that was saved last."""
        return msgspec.json.decode(PATH.read_bytes(), type=cls) if PATH.exists() else None


def table(made: Measured) -> str:
    """Return the table of a run for the page of the benchmarks."""
    lines = [
        "## The web UI\n",
        f"Measured in Chromium on {made.date} with a load of {made.load} before it; `make ui-bench` repeats it.\n",
        "| measure | found | budget |",
        "|---|---|---|",
    ]
    for name, budget in BUDGETS.items():
        sign = "≥" if budget.is_least else "≤"
        value = made.numbers.get(name)
        found = (
            f"not measured: {made.missing.get(name, 'left out')}" if value is None else f"{value:,.0f} {budget.unit}"
        )
        lines.append(f"| {budget.words} | {found} | {sign} {budget.limit:,.0f} {budget.unit} |")
    return "\n".join(lines) + "\n"
