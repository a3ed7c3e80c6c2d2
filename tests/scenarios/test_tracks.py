"""The law of tracks on every scenario and its children, at every event."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.engine.plan.plan import Plan
from noetl.server.cache.plan_cache import PlanCache
from noetl.stores.memory.store import MemoryStore
from noetl.testing.scenario import EXECUTION, Played, Player, read_scenario
from noetl.testing.virtual_time import run
from noetl.wiring.embedded import language_kinds
from tests.scenarios.test_scenarios import FOLDERS
from tests.unit.engine.queries.track_law import holds


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_lookup_equals_the_projection_at_every_event(folder: Path) -> None:
    scenario = read_scenario(folder)

    async def main() -> tuple[Played, dict[str, Plan]]:
        store = MemoryStore()
        plans = PlanCache(store, dict(scenario.script.get("defaults") or {"pool_capacity": 4}))
        played = await Player(scenario, store, language_kinds()).play()
        logs = [played.events, *(events for _, events in played.children)]
        hashes = {str(events[0].payload["playbook"]) for events in logs if events}
        return played, {name: await plans.get(name) for name in hashes}

    played, plans = run(main)
    for execution_id, events in [(EXECUTION, played.events), *played.children]:
        if events:
            holds(plans[str(events[0].payload["playbook"])], execution_id, events)
    assert played.events or "refused" in scenario.expect
