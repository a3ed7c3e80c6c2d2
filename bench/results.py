"""Results of a run as data: saved as JSON, loaded, compared with the baseline.

A result holds the numbers of each round of one side on one workload, and their medians. The side `limit-<form>` is the bare
loop beside that form. Tested in tests/bench/test_results.py.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.workloads import WORKLOADS

FOLDER = Path(__file__).parent / "results"
BASELINE = FOLDER / "baseline.json"
OURS = ("embedded", "cluster")
MOST_LOST = 0.15
SAME = ("processors", "memory")  # of the machine, for ratios to be compared


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """One side's numbers for one workload; `problem` says why some are missing."""

    side: str
    workload: str
    size: int
    medians: dict[str, float] = {}
    rounds: tuple[dict[str, float], ...] = ()
    problem: str = ""
    flush_ms: float = 0.0  # the median of the probes of the disk right before its rounds

    @staticmethod
    def of(
        side: str, workload: str, size: int, rounds: Sequence[dict[str, float]], problem: str = "",
        flushes: Sequence[float] = (),
    ) -> Result:  # fmt: skip
        kept = tuple({name: _short(value) for name, value in one.items()} for one in rounds)
        medians = {
            name: _short(statistics.median(one[name] for one in rounds)) for name in (rounds[0] if rounds else {})
        }
        flush = _short(statistics.median(flushes)) if flushes else 0.0
        return Result(side, workload, size, medians, kept, problem, flush)


class Results(msgspec.Struct, frozen=True):
    """A whole run."""

    date: str
    machine: dict[str, str]
    note: str
    scale: str
    rounds: int
    versions: dict[str, str]
    flush_ms: tuple[float, float]  # least and most of the probes of the disk before each round
    results: tuple[Result, ...]
    spin_ms: tuple[float, float] = (0.0, 0.0)  # least and most of the probes of the processor

    def text(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"

    @staticmethod
    def read(path: Path) -> Results:
        return msgspec.json.decode(path.read_bytes(), type=Results)

    @staticmethod
    def newest_path() -> Path | None:
        """Return the path of the newest run; its name is its date."""
        return max(FOLDER.glob("20*.json"), default=None)

    @staticmethod
    def newest() -> Results | None:
        path = Results.newest_path()
        return Results.read(path) if path else None

    @staticmethod
    def elsewhere() -> dict[str, Results]:
        """Return runs on other machines; their names are `<machine>-<date>`."""
        return {path.stem.partition("-20")[0]: Results.read(path) for path in sorted(FOLDER.glob("*-20*.json"))}

    def joined(self, later: Results) -> Results:
        """Replace workloads by those of a later run. Ratios stay within one run."""
        kept = [one for one in self.results if one.workload not in later.workloads()]
        known = list(WORKLOADS)
        told = (
            f"{', '.join(later.workloads())} in a run of its own on {later.date}{', ' * bool(later.note)}{later.note}."
        )
        return msgspec.structs.replace(
            self,
            note=f"{self.note} {told}".strip(),
            versions=self.versions | later.versions,
            flush_ms=_both(self.flush_ms, later.flush_ms),
            spin_ms=_both(self.spin_ms, later.spin_ms),
            results=tuple(sorted([*kept, *later.results], key=lambda one: known.index(one.workload))),
        )

    def value(self, side: str, workload: str, figure: str = "") -> float | None:
        """Return a median; by default of the workload's first figure, the one of ratios."""
        wanted = figure or WORKLOADS[workload].figures[0].name
        return next(
            (one.medians.get(wanted) for one in self.results if (one.side, one.workload) == (side, workload)), None
        )

    def spreads(self) -> list[float]:
        """Return, in order, the quotient of largest and smallest round of each result."""
        found = []
        for one in self.results:
            values = [each[WORKLOADS[one.workload].figures[0].name] for each in one.rounds]
            found += [max(values) / min(values)] if len(values) > 1 and min(values) > 0 else []
        return sorted(found)

    def sides(self) -> list[str]:
        return list(dict.fromkeys(one.side for one in self.results))

    def workloads(self) -> list[str]:
        return list(dict.fromkeys(one.workload for one in self.results))

    def others(self, form: str) -> list[str]:
        """Return the sides that a form is compared with: peers and its store's limit."""
        return [side for side in self.sides() if side not in OURS and side in (*_peers(self), f"limit-{form}")]

    def better(self, form: str, other: str, workload: str) -> float | None:
        """Return how many times better a form is than another side; above 1 is better."""
        own, its = self._comparable(form, workload), self._comparable(other, workload)
        if not own or not its:
            return None
        return its / own if WORKLOADS[workload].figures[0].less_is_better else own / its

    def _comparable(self, side: str, workload: str) -> float | None:
        """Return the figure of ratios; sides may have run the workload in other sizes."""
        value = self.value(side, workload)
        if value is None or not WORKLOADS[workload].figures[0].of_all:
            return value
        return value / next(one.size for one in self.results if (one.side, one.workload) == (side, workload))


def _peers(results: Results) -> Iterator[str]:
    return (side for side in results.sides() if not side.startswith("limit-"))


def _both(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


def _short(value: float) -> float:
    """Keep four digits that count."""
    return value if value == 0 or not math.isfinite(value) else float(f"{value:.4g}")


def unlike(now: Results, before: Results) -> list[str]:
    """Explain why two runs cannot be compared: another machine, or other sizes."""
    machines = [
        f"{name} was {before.machine.get(name)} and is {value}"
        for name, value in now.machine.items()
        if name in SAME and before.machine.get(name) != value
    ]
    sizes = {(one.side, one.workload): one.size for one in before.results}
    return machines + [
        f"the size of {one.workload} for {one.side} was {was} and is {one.size}"
        for one in now.results
        if (was := sizes.get((one.side, one.workload), one.size)) != one.size
    ]


def lost(now: Results, before: Results) -> list[str]:
    """List the workloads whose ratio lost more than allowed.

    The ratio is the geometric mean over the sides that both runs have.
    """
    return [
        f"{form} {workload}: {1 - change:.0%} worse against {', '.join(others)} than the baseline of {before.date}"
        for form in OURS
        for workload in now.workloads()
        for others, change in _changes(now, before, form, workload)
        if change < 1 - MOST_LOST
    ]


def _changes(now: Results, before: Results, form: str, workload: str) -> Iterator[tuple[list[str], float]]:
    others, logarithms = [], []
    for other in now.others(form):
        new, old = now.better(form, other, workload), before.better(form, other, workload)
        if new and old:
            others.append(other)
            logarithms.append(math.log(new / old))
    if others:
        yield others, math.exp(statistics.mean(logarithms))
