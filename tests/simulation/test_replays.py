"""Redrive dead letters under faults: nothing counts twice, projections match."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from noetl.engine.state.evolve import fold
from noetl.model.errors import NoetlError
from noetl.model.events import Event
from noetl.model.letters import PENDING
from noetl.ports.letters import LetterSelection
from noetl.server.operations.dead_letters import ready, replay
from tests.simulation.seed import play_world
from tests.simulation.world import EXECUTION, World

_SEEDS = 60
_PART = 20
_MOST = 12  # replays that one seed sees


class Replayed(World):
    """A world in which dead letters are redriven, also after the execution ended."""

    replays = 0

    def __init__(self, seed: int, folder: Path | None = None) -> None:
        super().__init__(seed, folder)
        self.failing = 0.2
        self.helpful = False  # a signal may go to a replay that waits longer, which `explain` does not foresee
        self._picks = Random(seed)  # of its own: the rest of the seed stays what it is

    async def _outside(self) -> None:
        self._spawn(self._look_after())
        await super()._outside()

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(self._picks.uniform(0.5, 4.0))
            await self._replay()

    async def _replay(self) -> None:
        waiting = await self.ground.store.letters(LetterSelection((PENDING,), EXECUTION))
        if not waiting or self.replays >= _MOST:
            return
        self.replays += 1
        self.weather.seen["replays"] += 1  # so that work is done again for a reason
        self.failing = 0.2 if self.replays < 4 else 0.05  # what fails first works later
        letter = self._picks.choice(waiting)
        name = f"look-{self.replays}"
        for _ in range(self._picks.randint(1, 2)):  # sometimes twice, as after a lost response
            try:
                found = await ready(self.ground.store, self.control, [letter], {}, {})
                await self.call(replay(self.control, found, {}, by="sim", name=name))
            except (NoetlError, OSError):
                await asyncio.sleep(0.5)

    async def _rest(self) -> None:
        await super()._rest()
        for _ in range(2_000):
            if self.weather.calm and not await self._busy() and not self._down.is_set():
                self.replays = _MOST
                await asyncio.sleep(6.0)  # what was on its way arrives
                if not await self._busy():
                    return
            await asyncio.sleep(2.0)
        raise AssertionError("a replay never ends")

    async def _busy(self) -> bool:
        """Whether a redrive is in flight that waits for nothing from outside."""
        state = fold(EXECUTION, await self.ground.store.read(EXECUTION))
        return any(run.suspended is None or run.suspended.signal is None for run in state.replays.values())


def hold(events: list[Event]) -> Counter[str]:
    """Hold a log to what replays promise; gives what happened."""
    seen = Counter(event.event_type for event in events)
    repaired = Counter(
        (event.payload["of"], event.iteration)
        for event in events
        if event.event_type.endswith(".repaired") and "of" in event.payload
    )
    assert all(count == 1 for count in repaired.values()), f"repaired twice: {repaired}"
    begun = {str(event.step_run_id) for event in events if event.event_type == "dlq.replayed"}
    over = Counter(
        str(event.step_run_id)
        for event in events
        if event.event_type in ("dlq.returned", "loop.item.repaired", "step.repaired")
    )
    state = fold(EXECUTION, events)
    assert begun == over.keys() | state.replays.keys(), "a replay was lost"
    assert all(count == 1 for count in over.values()), "a replay ended twice"
    for name, ended in state.ended.items():
        stats = ended.result.get("stats") if isinstance(ended.result, dict) else None
        if stats is not None and "results" in ended.result and ended.status == "ok":
            assert stats["total"] == stats["succeeded"] + stats["failed"] + stats["skipped"], name
            assert stats["failed"] == state.partial.get(ended.run_id, 0), name
    if state.outcome == "partial":
        assert state.partial
    return seen


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.chaos) for n in range(_PART, _SEEDS, _PART))])
def test_replays_in_the_storm(first: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + _PART):
        folder = None if seed % 4 else tmp_path / str(seed)
        if folder is not None:
            folder.mkdir()
        _, logs = play_world(lambda seed=seed, folder=folder: Replayed(seed, folder), seed)  # type: ignore[misc]
        seen += hold(logs[EXECUTION])
    assert seen["dlq.returned"] >= 1, seen
    assert seen["loop.item.repaired"] + seen["step.repaired"] >= 1, seen
