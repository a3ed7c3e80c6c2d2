"""Play a seed again: `python -m tests.simulation.seed [--file] 1234`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from noetl.engine.state.execution import STATE_VERSION
from noetl.model.events import Event
from noetl.testing.virtual_time import run
from tests.conformance.commits import snapshot_of
from tests.simulation.invariants import check_all, effects_happened
from tests.simulation.world import EXECUTION, World


class SeedError(AssertionError):
    """A seed broke an invariant."""


def play(seed: int, folder: Path | None = None) -> tuple[World, dict[str, list[Event]]]:
    """Play a seed in memory or on a file, and check every invariant.

    Raises SeedError, which shows how to play it again.
    """
    again = f"play it again: python -m tests.simulation.seed {'' if folder is None else '--file '}{seed}"
    return play_world(lambda: World(seed, folder), seed, again)


def play_world(make: Callable[[], World], seed: int, again: str = "") -> tuple[World, dict[str, list[Event]]]:
    """Play a world and hold it to every invariant likewise."""
    log = logging.getLogger("noetl")
    level = log.level
    log.setLevel(logging.CRITICAL)  # faults are what this is about

    async def main() -> tuple[World, dict[str, list[Event]]]:
        world = make()
        try:
            return world, await _played(world)
        finally:
            await world.ground.close()

    try:
        return run(main)
    except BaseException as error:
        raise SeedError(f"seed {seed}: {error!r}\n{again}") from error
    finally:
        log.setLevel(level)


async def _played(world: World) -> dict[str, list[Event]]:
    live = await world.live()
    ground = world.ground
    logs = await ground.logs()
    for execution_id, events in logs.items():
        beside = await ground.derived.rows(execution_id)
        check_all(execution_id, events, beside, live if execution_id == EXECUTION else None)
        snapshot = await snapshot_of(ground.store, execution_id, STATE_VERSION)
        assert snapshot is None or snapshot[0] <= len(events), "a snapshot knows more than the log"
    differences = await ground.differences()
    assert not differences, f"tables do not follow from the log: {differences}"
    if world.steady.problem is not None:
        raise world.steady.problem
    effects_happened(logs, world.effects, calm=not world.weather.seen)
    return logs


if __name__ == "__main__":
    for given in sys.argv[1:]:
        if given == "--file":
            continue
        with TemporaryDirectory() as place:
            played, found = play(int(given), Path(place) if "--file" in sys.argv else None)
        print(played.text)
        print(dict(played.weather.seen))
        for execution, written in found.items():
            print(execution)
            for event in written:
                print(" ", event.seq, event.event_type, event.step_run_id or event.entity_id, event.status or "")
