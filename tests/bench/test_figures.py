"""Figures are computed from observations; playbooks of workloads are valid."""

from __future__ import annotations

import pytest

from bench import workloads
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


def test_times_become_quantiles() -> None:
    assert figures("W4", 20, {"times": [number / 1000 for number in range(1, 21)]}) == {"p50_ms": 10.5, "p95_ms": 20.0}
    assert workloads.quantile([3.0], 0.99) == 3.0


@pytest.mark.parametrize(
    "text",
    [
        workloads.chain("a", 3), workloads.chain("a", 3, result=""), workloads.growing("a", 3), workloads.loop("a", 3), workloads.loop("a", 200_001),
        workloads.pipeline("a", 3), workloads.marked("a", 3, "/somewhere"), workloads.adding("a", 3), workloads.fetching("a", 3, "http://web"),
        workloads.saving("a", "http://web", "postgresql:///x"), workloads.transforming("a", 3),
    ],
)  # fmt: skip
def test_a_playbook_is_valid(text: str) -> None:
    assert normalize(parse(text, "bench.yaml")).workflow


def test_every_workload_has_a_size_at_every_scale() -> None:
    for workload in workloads.WORKLOADS.values():
        sizes = [workload.size(scale) for scale in workloads.SCALES]
        assert sizes == sorted(sizes), workload.name
        assert workload.figures
