"""Duplicate, reordered and late reports change nothing; lost rows are put back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noetl.model.events import Event
from tests.simulation.late import LateWorld, LossyWorld
from tests.simulation.seed import play_world
from tests.simulation.world import EXECUTION, World

_SLICE = 10  # seeds that always run
_PART = 25


def parts(end: int) -> pytest.MarkDecorator:
    """A few seeds; under `make chaos` all up to the end."""
    more = (pytest.param(range(first, first + _PART), marks=pytest.mark.chaos) for first in range(0, end, _PART))
    return pytest.mark.parametrize("seeds", [range(_SLICE), *more], ids=lambda seeds: f"{seeds.start}-{seeds.stop}")


def played(make: Callable[[int], World], seeds: range) -> list[tuple[World, dict[str, list[Event]]]]:
    return [play_world(lambda seed=seed: make(seed), seed) for seed in seeds]  # type: ignore[misc]


@parts(10_000)
def test_reports_that_come_again_or_a_day_late_change_nothing(seeds: range) -> None:
    worlds = [world for world, _ in played(LateWorld, seeds)]
    counts = [(world.deliveries, world.late) for world in worlds if isinstance(world, LateWorld)]
    assert sum(count for count, _ in counts) > 10 * len(seeds)
    assert sum(late for _, late in counts) > 0


def test_a_report_that_is_under_way_when_everything_has_ended_is_waited_for() -> None:
    found = [play_world(lambda seed=seed: LateWorld(seed), seed) for seed in range(7_926, 7_936)]  # type: ignore[misc]
    last = [
        logs[EXECUTION][-1].event_type
        for world, logs in found
        if world.weather.seen["report_repeated"] + world.weather.seen["report_delayed"]
    ]
    assert "report.late" in last


@parts(1_000)
def test_executions_whose_rows_vanish_end_all_the_same(seeds: range) -> None:
    found = played(lambda seed: LossyWorld(seed, loses=True), seeds)
    assert sum(world.lost for world, _ in found if isinstance(world, LossyWorld)) > len(seeds)
    repaired = [
        event for _, logs in found for log in logs.values() for event in log if event.event_type.endswith("repaired")
    ]
    assert len(repaired) > len(seeds) // 2


@parts(1_000)
def test_what_runs_through_faults_is_never_taken_for_what_is_lost(seeds: range) -> None:
    for _, logs in played(lambda seed: LossyWorld(seed, loses=False), seeds):
        for log in logs.values():
            assert not [event for event in log if event.event_type == "execution.repaired"]
