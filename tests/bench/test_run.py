"""The benchmark runs: small, on NoETL alone, in both forms, and gives numbers with what is needed to read them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from bench import report
from bench.results import Results

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> Results:
    command = [sys.executable, "bench/run.py", "--peer", "none", "--scale", "small", "--rounds", "1", "--json"]
    ran = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return msgspec.json.decode(ran.stdout, type=Results)


def test_a_workload_is_measured_in_both_forms_beside_its_limit() -> None:
    results = run("--workload", "W1")
    assert [one.problem for one in results.results] == [""] * 4
    assert results.sides() == ["embedded", "limit-embedded", "cluster", "limit-cluster"]
    assert all(results.value(side, "W1") for side in results.sides())
    assert results.flush_ms[0] > 0
    assert "fsync=on" in results.machine["postgresql"]
    assert "W1 steps in a row (20)" in report.console(results)


def test_a_run_goes_on_after_its_process_was_killed() -> None:
    results = run("--workload", "W6", "--form", "embedded")
    [one] = results.results
    assert (one.problem, one.medians["missing"]) == ("", 0)
    assert one.medians["doubled"] <= 1
