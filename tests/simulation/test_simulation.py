"""Play the whole system by seeds with faults, and check the invariants.

The default run plays 100 seeds; `-m chaos` plays 20,000. A seed that fails tells how to play it again.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from noetl.engine.state.evolve import fold
from tests.simulation.faults import FAULTS
from tests.simulation.seed import play
from tests.simulation.world import EXECUTION

_SEEDS = 100
_PART = 25
_CHAOS = 20_000
_CHAOS_PART = 200


def health(first: int, count: int, folder: Path | None = None) -> tuple[Counter[str], Counter[str]]:
    """Play seeds; give how often each fault struck, and how the executions ended."""
    seen: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for seed in range(first, first + count):
        place = None if folder is None else folder / str(seed)
        if place is not None:
            place.mkdir()
        world, logs = play(seed, place)
        seen += world.weather.seen
        ends[fold(EXECUTION, logs[EXECUTION]).status] += 1
    return seen, ends


@pytest.mark.parametrize("first", range(0, _SEEDS, _PART))
def test_seeds(first: int) -> None:
    seen, _ = health(first, _PART)
    assert len(seen) >= 8, f"these seeds saw only {sorted(seen)}"


@pytest.mark.chaos
@pytest.mark.parametrize("first", range(_SEEDS, _SEEDS + _CHAOS, _CHAOS_PART))
def test_many_seeds(first: int) -> None:
    seen, ends = health(first, _CHAOS_PART)
    rare = [fault for fault in FAULTS if seen[fault] < 20]
    assert not rare, f"these faults hardly struck: {rare} of {seen}"
    assert ends["completed"] + ends["partial"] >= 0.6 * _CHAOS_PART, f"too few executions complete: {ends}"


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.chaos) for n in range(_PART, 1_000, _PART))])
def test_seeds_on_a_file(first: int, tmp_path: Path) -> None:
    health(first, _PART, tmp_path)


@pytest.mark.parametrize("seed", [1, 35, 75, 85])
def test_a_seed_is_played_again_as_it_was(seed: int) -> None:
    first, second = play(seed), play(seed)
    assert first[1] == second[1]
    assert first[0].effects == second[0].effects
