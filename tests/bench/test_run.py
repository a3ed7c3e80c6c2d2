"""A small benchmark on NoETL alone, in both forms, produces its numbers.

Most of it is measured in this process; that a run ends as it should is seen of the program itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from bench import report
from bench import run as benchmark
from bench.peers.side import Seen
from bench.results import Results
from bench.run import Runner, Side, arguments, check
from bench.workloads import WORKLOADS, Workload

ROOT = Path(__file__).parents[2]
SOME, REST = ("R6", "R8"), ("R2", "R7", "R9")
SMALL = ("--peer", "none", "--scale", "small", "--rounds", "1")


def run(*arguments: str) -> Results:
    command = [sys.executable, "bench/run.py", *SMALL, "--json"]
    ran = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return msgspec.json.decode(ran.stdout, type=Results)


@pytest.fixture(scope="module")
def results(forked: None) -> Results:
    """Measure in one run, which starts one PostgreSQL."""
    names = ("W1", "W10", "W3", "R3", *SOME)
    return benchmark.run(arguments([*SMALL, *(word for name in names for word in ("--workload", name))]))


def test_a_workload_is_measured_in_both_forms_beside_its_limit(results: Results) -> None:
    assert [one.problem for one in results.results] == [""] * 16
    assert results.sides() == ["embedded", "limit-embedded", "cluster", "limit-cluster"]
    assert all(results.value(side, "W1") for side in results.sides())
    assert results.flush_ms[0] > 0
    assert "fsync=on" in results.machine["postgresql"]
    assert "W1 steps in a row (20)" in report.console(results)


def test_executions_at_once_are_started_by_one_request_and_by_one_each(results: Results) -> None:
    for side in ("embedded", "cluster"):
        assert results.value(side, "W3")
        assert results.value(side, "W3", "apart_steps_per_s")


def test_real_work_is_measured_with_its_processor_time(results: Results) -> None:
    for side in ("embedded", "cluster"):
        assert results.value(side, "R3")
        assert results.value(side, "R3", "cpu_ms_each")


def test_loads_and_children_are_measured(results: Results) -> None:
    assert all(results.value(side, name) for side in ("embedded", "cluster") for name in SOME)


@pytest.mark.chaos
def test_loops_signals_and_timers_are_measured() -> None:
    found = run("--form", "embedded", *(word for name in REST for word in ("--workload", name)))
    assert [one.problem for one in found.results] == [""] * len(REST)
    assert all(found.value("embedded", name) for name in REST)


class NoServer:
    """A database server without clients."""

    def create(self, database: str) -> None: ...

    def drop(self, database: str) -> None: ...

    def address(self, database: str) -> str:
        return database


def test_sides_take_turns_and_a_failure_stops_nobody_else(tmp_path: Path) -> None:
    turns: list[tuple[str, int, int]] = []

    def side(name: str, *seen: Seen | Exception, most: int = 200) -> Side:
        left = list(seen)

        def measure(_workload: Workload, size: int, _folder: str, _database: str, rounds: int) -> Seen:
            turns.append((name, size, rounds))
            given = left.pop(0)
            if isinstance(given, Exception):
                raise given
            return given

        return Side(measure, {"W1": most})

    sides = {
        "embedded": side("embedded", *({"seconds": second, "limit": {"seconds": 0.2}} for second in (2.0, 1.0, 4.0))),
        "pgqueuer": side("pgqueuer", {"seconds": 8.0}, RuntimeError("it broke")),
        "celery": side("celery", {"absent": "nothing like it"}),
        "airflow": side("airflow", {"rounds": [{"seconds": 10.0}] * 3}, most=10),
    }
    runner = Runner(arguments([]), NoServer(), sides, str(tmp_path))  # type: ignore[arg-type]
    runner.run(WORKLOADS["W1"])
    first = [("embedded", 200, 3), ("pgqueuer", 200, 3), ("celery", 200, 3), ("airflow", 10, 3)]
    assert turns == [*first, ("embedded", 200, 2), ("pgqueuer", 200, 2), ("embedded", 200, 1)]
    found = {one.side: (one.size, one.medians, one.problem) for one in runner.results}
    assert found == {
        "embedded": (200, {"ms_per_step": 10.0}, ""),
        "limit-embedded": (200, {"ms_per_step": 1.0}, ""),
        "pgqueuer": (200, {"ms_per_step": 40.0}, "round 2: RuntimeError: it broke"),
        "celery": (200, {}, "nothing like it"),
        "airflow": (10, {"ms_per_step": 1000.0}, ""),
    }
    assert all(one.flush_ms > 0 for one in runner.results if not one.side.startswith("limit-"))


def test_a_loss_against_the_baseline_fails(results: Results, tmp_path: Path) -> None:
    """Fake a baseline in which the same form was far faster, then far slower."""
    quick, slow = (tmp_path / name for name in ("quick.json", "slow.json"))
    for path, factor in ((quick, 0.01), (slow, 100.0)):
        doctored = [
            structs.replace(one, medians={name: value * factor for name, value in one.medians.items()})
            if (one.side, one.workload) == ("embedded", "W1") else one
            for one in results.results
        ]  # fmt: skip
        path.write_text(structs.replace(results, results=tuple(doctored)).text())
    command = [sys.executable, "bench/run.py", *SMALL, "--workload", "W1", "--form", "embedded"]
    ran = subprocess.run(
        [*command, "--check", "--baseline", str(quick)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1, ran.stderr
    assert "worse against limit-embedded than the baseline of" in ran.stdout
    assert check(results, slow) == 0


def test_a_mixed_load_gives_all_its_numbers_in_both_forms(results: Results) -> None:
    embedded, cluster = (one.medians for one in results.results if one.workload == "W10")
    names = [figure.name for figure in WORKLOADS["W10"].figures]
    assert all(seen[name] > 0 for seen in (embedded, cluster) for name in names)
    assert all(seen["rows_per_step"] < seen["events_per_step"] for seen in (embedded, cluster))
    assert "events a step" in report.console(results)


def test_a_run_goes_on_after_its_process_was_killed() -> None:
    results = run("--workload", "W6", "--form", "embedded")
    [one] = results.results
    assert (one.problem, one.medians["missing"]) == ("", 0)
    assert one.medians["doubled"] <= 1
