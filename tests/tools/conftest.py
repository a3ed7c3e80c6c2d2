"""Fixtures of tool tests: PostgreSQL, attempts in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.databases import empty_database
from tests.tools.attempts import Attempts


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with empty_database() as started:
        yield started


@pytest_asyncio.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    made = Attempts(folder=str(tmp_path))
    yield made
    await made.close()
