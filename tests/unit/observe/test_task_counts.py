"""What a worker counts: kinds, pools, outcomes, and buckets by kind."""

from __future__ import annotations

import re

import pytest

from noetl.observe.task_counts import TaskCounts

pytestmark = pytest.mark.asyncio


async def test_attempts_are_counted_by_kind_pool_and_outcome() -> None:
    counts = TaskCounts()
    for kind, pool, ok in (("http", "", True), ("http", "", False), ("python", "gpu", True)):
        counts.begin(kind, pool)
        counts.end(kind, pool, 0.3, ok=ok)
    counts.begin("http", "")
    page = (await counts.text()).decode().splitlines()
    for line in (
        'noetl_worker_tasks_started_total{kind="http",pool="default"} 3.0',
        'noetl_worker_tasks_completed_total{kind="http",ok="true",pool="default"} 1.0',
        'noetl_worker_tasks_completed_total{kind="http",ok="false",pool="default"} 1.0',
        'noetl_worker_tasks_completed_total{kind="python",ok="true",pool="gpu"} 1.0',
        'noetl_worker_task_duration_seconds_count{kind="http"} 2.0',
        'noetl_worker_task_duration_seconds_bucket{kind="http",le="0.2"} 0.0',
        'noetl_worker_task_duration_seconds_bucket{kind="http",le="0.5"} 2.0',
    ):
        assert line in page


async def test_buckets_fit_the_kind() -> None:
    counts = TaskCounts()
    for kind in ("http", "python", "postgres", "shell"):
        counts.end(kind, "", 0, ok=True)
    page = (await counts.text()).decode()
    first = {
        kind: re.search(rf'bucket{{kind="{kind}",le="([\d.]+)"}}', page) for kind in ("http", "python", "postgres")
    }
    assert {kind: found[1] for kind, found in first.items() if found} == {
        "http": "0.05",
        "python": "0.1",
        "postgres": "0.01",
    }
    assert 'bucket{kind="shell",le="30.0"} 1.0' in page


async def test_a_sink_is_measured_by_the_name_in_the_playbook() -> None:
    counts = TaskCounts()
    counts.end("postgres", "", 0.03, ok=True, sink="postgres:results")
    counts.end("python", "", 0.03, ok=True)
    page = (await counts.text()).decode().splitlines()
    assert [line for line in page if line.startswith("noetl_worker_sink_duration_seconds_count")] == [
        'noetl_worker_sink_duration_seconds_count{sink="postgres:results"} 1.0'
    ]
