"""Fixtures of tool tests: PostgreSQL, a web server, attempts in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.services import postgres
from tests.tools.attempts import Attempts
from tests.tools.web import Web


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres() as started:
        yield started


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


@pytest_asyncio.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    made = Attempts(folder=str(tmp_path))
    yield made
    await made.close()
