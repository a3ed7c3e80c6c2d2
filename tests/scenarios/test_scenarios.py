"""Every rule of the language, one folder each: played on every store, replayed.

NOETL_UPDATE_GOLDEN=1 writes the logs anew; read what changed before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.dsl.validate import validate
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import checksum
from noetl.model.events import Event
from noetl.stores.memory.store import MemoryStore
from noetl.testing.scenario import EXECUTION, Played, Player, Scenario, Store, read_scenario
from noetl.testing.virtual_time import run, threads
from noetl.wiring.embedded import language_kinds
from tests.databases import fresh_database
from tests.scenarios.expect import check
from tests.scenarios.golden import golden
from tests.watched import WatchedPostgres, WatchedStore

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent for path in HERE.glob("*/outcomes.yaml"))
UPDATE = os.environ.get("NOETL_UPDATE_GOLDEN") == "1"


def opened_store(kind: str, folder: Path) -> Store:
    if kind == "postgres":
        return WatchedPostgres(fresh_database())
    return MemoryStore() if kind == "memory" else WatchedStore(folder / "noetl.db")


def played(scenario: Scenario, store: str, folder: Path) -> Played:
    async def main() -> Played:
        opened = opened_store(store, folder)
        try:
            return await Player(scenario, opened, language_kinds()).play()
        finally:
            with threads():
                await opened.close()

    return run(main)


def held(found: Played) -> None:
    """Check that the log folds to the live state: whole, as bytes, from a snapshot."""
    if found.refused is not None:
        return
    assert found.live is not None
    assert found.cold is not None
    live = checksum(found.live)
    assert checksum(fold(EXECUTION, found.events)) == live
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(found.events), type=list[Event])
    assert checksum(fold(EXECUTION, stored)) == live
    assert checksum(found.cold) == live
    assert [event.seq for event in found.events] == list(range(1, len(found.events) + 1))


def places() -> list[Any]:
    """Return every scenario on every store; on PostgreSQL most only under chaos."""
    found = [(folder, store) for folder in FOLDERS for store in ("memory", "sqlite")]
    made = [pytest.param(*one, id=f"{one[0].name}-{one[1]}") for one in found]
    for number, folder in enumerate(FOLDERS):
        marks = [] if number % 12 == 0 else [pytest.mark.chaos]
        made.append(pytest.param(folder, "postgres", id=f"{folder.name}-postgres", marks=marks))
    return made


@pytest.mark.parametrize(("folder", "store"), places())
def test_scenario(folder: Path, store: str, tmp_path: Path) -> None:
    scenario = read_scenario(folder)
    found = played(scenario, store, tmp_path)
    held(found)
    check(found, scenario.expect)
    text = golden(found)
    path = folder / "events.golden.yaml"
    if UPDATE and store == "memory":
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_its_playbooks_are_valid(folder: Path) -> None:
    for name, text in read_scenario(folder).playbooks.items():
        found = validate(text, name, language_kinds())
        assert [problem for problem in found if problem.severity == "error"] == []
