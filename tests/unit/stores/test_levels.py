"""Every schema level has a kept store, which this version opens and continues."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from noetl.settings import Settings
from noetl.stores.common.queries import migrations
from noetl.wiring.embedded import open_rebuild, open_store
from tests.databases import empty_database
from tests.unit.stores.level import (
    DIALECTS,
    ENDED,
    FOLDER,
    WAITING,
    file_of,
    load_postgres,
    load_sqlite,
    newest,
    signal,
)

LEVELS = [(dialect, level) for dialect in DIALECTS for level in range(1, newest(dialect) + 1)]


def test_every_level_has_a_kept_store() -> None:
    wanted = {file_of(*one).name for one in LEVELS}
    kept = {path.name for path in FOLDER.iterdir()}
    assert kept == wanted, "record a store of the new level with `python -m tests.unit.stores.level`"


@pytest.mark.asyncio
@pytest.mark.parametrize(("dialect", "level"), LEVELS)
async def test_a_store_of_a_level_is_opened_and_goes_on(dialect: str, level: int, tmp_path: Path) -> None:
    data = gzip.decompress(file_of(dialect, level).read_bytes())
    if dialect == "sqlite":
        await _goes_on(load_sqlite(data, tmp_path))
    else:
        with empty_database() as address:
            await _goes_on(load_postgres(data, tmp_path, address))


async def _goes_on(settings: Settings) -> None:
    store = open_store(settings)
    ended = await store.execution(ENDED)
    assert ended is not None
    assert (ended["status"], ended["result"]) == ("completed", 7)
    assert await open_rebuild(store).check() == []
    await store.close()
    assert await signal(settings, WAITING) == "completed 7"


def test_migrations_are_numbered() -> None:
    for dialect in DIALECTS:
        assert [title[:4] for _, title in migrations(dialect)] == [f"{n:04}" for n in range(1, newest(dialect) + 1)]
