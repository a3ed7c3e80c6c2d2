"""After every commit of every scenario, derived rows follow from the logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from noetl.ports import Claim, Commit, Receipt
from noetl.server.background.rebuild import Rebuild
from noetl.server.cache.plan_cache import PlanCache
from noetl.stores.memory.derived import MemoryDerived
from noetl.stores.memory.store import MemoryStore
from noetl.testing.scenario import Player, read_scenario
from noetl.testing.virtual_time import run
from noetl.wiring.embedded import language_kinds

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent for path in HERE.glob("*/outcomes.yaml"))


class Compared(MemoryStore):
    """A store that is compared with its log after every commit."""

    def __init__(self, defaults: dict[str, int]) -> None:
        super().__init__()
        self.rebuild = Rebuild(self, MemoryDerived(self), PlanCache(self, defaults))
        self.commits = 0
        self.found: list[str] = []

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        receipt = await super().commit(commits, claims)
        if any(commit.events for commit in commits):
            self.commits += 1
            self.found += [f"after commit {self.commits}: {text}" for text in await self.rebuild.check()]
        return receipt


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_tables_follow_from_the_log(folder: Path) -> None:
    scenario = read_scenario(folder)
    store = Compared(dict(scenario.script.get("defaults") or {"pool_capacity": 4}))

    async def main() -> None:
        await Player(scenario, store, language_kinds()).play()

    run(main)
    assert store.found == []
    assert store.commits or "refused" in scenario.expect
