"""Plays one seed: `python -m tests.simulation.seed 1234` plays it again and tells what happened."""

from __future__ import annotations

import logging
import sys

from noetl.model.events import Event
from noetl.stores.memory import MemoryStore
from noetl.testing.virtual_time import run
from tests.simulation.invariants import check_all, effects_happened
from tests.simulation.world import EXECUTION, World


class SeedError(AssertionError):
    """A seed broke an invariant."""


async def _logs(world: World) -> dict[str, list[Event]]:
    store = MemoryStore(world.tables)
    return {found: await store.read(found) for found in world.tables.logs}


def play(seed: int) -> tuple[World, dict[str, list[Event]]]:
    """Play a seed and hold it to every invariant. Raises SeedError, which tells how to play it again."""
    logging.getLogger("noetl").setLevel(logging.CRITICAL)  # faults are what this is about

    async def main() -> tuple[World, dict[str, list[Event]]]:
        world = World(seed)
        live = await world.live()
        logs = await _logs(world)
        for execution_id, events in logs.items():
            check_all(execution_id, events, world.tables, live if execution_id == EXECUTION else None)
        if world.steady.problem is not None:
            raise world.steady.problem
        effects_happened(logs, world.effects, calm=not world.weather.seen)
        return world, logs

    try:
        return run(main)
    except BaseException as error:
        raise SeedError(f"seed {seed}: {error!r}\nplay it again: python -m tests.simulation.seed {seed}") from error


if __name__ == "__main__":
    for given in sys.argv[1:]:
        played, found = play(int(given))
        print(played.text)
        print(dict(played.weather.seen))
        for execution, written in found.items():
            print(execution)
            for event in written:
                print(" ", event.seq, event.event_type, event.step_run_id or event.entity_id, event.status or "")
