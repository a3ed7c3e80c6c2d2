"""What a server counts of its own engine."""

from __future__ import annotations

from noetl.observe.counters import page
from noetl.observe.engine_counts import EngineCounts


def test_each_number_has_its_series() -> None:
    counts = EngineCounts()
    began = counts.begin()
    counts.committed(12, began)
    counts.committed(0, began)  # it only claimed work
    counts.found_state()
    counts.replayed(began)
    counts.expired(0)
    counts.expired(3)
    counts.fired("schedule", 7)
    counts.fired("schedule", -0.5)  # a clock moved
    found = page(counts.counted).decode().splitlines()
    for line in (
        "noetl_commit_duration_seconds_count 2.0",
        'noetl_commit_messages_bucket{le="10.0"} 0.0',
        'noetl_commit_messages_bucket{le="20.0"} 1.0',
        "noetl_commit_messages_sum 12.0",
        'noetl_state_cache_total{outcome="hit"} 1.0',
        'noetl_state_cache_total{outcome="miss"} 1.0',
        "noetl_replay_duration_seconds_count 1.0",
        "noetl_lease_expiries_total 3.0",
        'noetl_trigger_lag_seconds_bucket{kind="schedule",le="0.5"} 1.0',
        'noetl_trigger_lag_seconds_sum{kind="schedule"} 7.0',
    ):
        assert line in found
