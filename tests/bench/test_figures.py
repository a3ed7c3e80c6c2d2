"""Figures are computed from observations; playbooks of workloads are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import workloads
from bench.peers.side import write_sales
from bench.workloads import figures
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize


def test_seconds_become_the_unit_of_the_workload() -> None:
    assert figures("W1", 200, {"seconds": 1.0}) == {"ms_per_step": 5.0}
    assert figures("W2", 1_000, {"seconds": 0.5}) == {"items_per_s": 2_000.0}
    assert figures("W3", 200, {"seconds": 0.5}) == {"steps_per_s": 2_000.0}
    both = {"seconds": 0.5, "apart_seconds": 1.0}
    assert figures("W3", 200, both) == {"steps_per_s": 2_000.0, "apart_steps_per_s": 1_000.0}
    assert figures("W7", 100, {"seconds": 0.01}) == {"ms_per_task": 0.1}
    assert figures("W5", 1, {"seconds": 0.5}) == {"seconds": 0.5}


def test_real_work_has_its_time_and_its_processor_time() -> None:
    seen = {"seconds": 2.0, "cpu_ms": 1_000.0}
    assert figures("R6", 100, seen) == {"seconds": 2.0, "cpu_s": 1.0}
    assert figures("R7", 1_000, seen) == {"signals_per_s": 500.0, "cpu_ms_per_signal": 1.0}
    assert figures("R8", 200, seen) == {"children_per_s": 100.0, "cpu_ms_per_child": 5.0}
    assert figures("R9", 10_000, seen) == {"last_s": 2.0, "cpu_ms_each": 0.1}


def test_a_file_of_sales_has_the_size_and_the_rows_that_are_told(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    rows = write_sales(path, 0.01)
    assert 10_000 <= path.stat().st_size < 10_100
    assert len(path.read_text().splitlines()) == rows + 1


def test_times_become_quantiles() -> None:
    assert figures("W4", 20, {"times": [number / 1000 for number in range(1, 21)]}) == {"p50_ms": 10.5, "p95_ms": 20.0}
    assert workloads.quantile([3.0], 0.99) == 3.0


@pytest.mark.parametrize(
    "text",
    [
        workloads.chain("a", 3), workloads.chain("a", 3, result=""), workloads.growing("a", 3), workloads.loop("a", 3), workloads.loop("a", 200_001),
        workloads.pipeline("a", 3), workloads.marked("a", 3, "/somewhere"), workloads.adding("a", 3), workloads.fetching("a", 3, "http://web"),
        workloads.saving("a", "http://web", "postgresql:///x"), workloads.transforming("a", 3),
        workloads.loading("a", "/some/where.csv", "postgresql:///x"), workloads.waiting("a"), workloads.calling("a", "bench/b", 3), workloads.sleeping("a"),
    ],
)  # fmt: skip
def test_a_playbook_is_valid(text: str) -> None:
    assert normalize(parse(text, "bench.yaml")).workflow


def test_every_workload_has_a_size_at_every_scale() -> None:
    for workload in workloads.WORKLOADS.values():
        sizes = [workload.size(scale) for scale in workloads.SCALES]
        assert sizes == sorted(sizes), workload.name
        assert workload.figures
