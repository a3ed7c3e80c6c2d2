"""Every rule of the language, shown by a folder here: played on every store, compared with its log, and replayed.

NOETL_UPDATE_GOLDEN=1 writes the logs anew; read what changed before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from noetl.dsl.validate import validate
from noetl.engine.evolve import fold
from noetl.engine.state import checksum
from noetl.model.events import Event
from noetl.stores.database import Database
from noetl.stores.memory import MemoryStore
from noetl.stores.sqlite import SqliteStore
from noetl.testing.scenario import EXECUTION, Played, Player, Scenario, read_scenario
from noetl.testing.virtual_time import run, threads
from noetl.wiring import language_kinds
from tests.scenarios.expect import check
from tests.scenarios.golden import golden

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent for path in HERE.glob("*/outcomes.yaml"))
UPDATE = os.environ.get("NOETL_UPDATE_GOLDEN") == "1"
Result = TypeVar("Result")


class WatchedDatabase(Database):
    """Keeps pretended time still while its thread works."""

    async def run(self, job: Callable[[Any], Result]) -> Result:
        with threads():
            return await super().run(job)


class WatchedStore(SqliteStore):
    """The store on such a database."""

    def __init__(self, path: Path) -> None:
        self.database = WatchedDatabase(path)


def played(scenario: Scenario, store: str, folder: Path) -> Played:
    async def main() -> Played:
        opened = MemoryStore() if store == "memory" else WatchedStore(folder / "noetl.db")
        try:
            return await Player(scenario, opened, language_kinds()).play()
        finally:
            with threads():
                await opened.close()

    return run(main)


def held(found: Played) -> None:
    """Hold the laws: the log folds to the live state, whole, as bytes, and from the last snapshot."""
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


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
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
