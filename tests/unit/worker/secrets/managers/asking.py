"""Access of secret managers to a real HTTP client, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from noetl.clock import SteadyClock
from noetl.worker.http.clients import HttpClient
from noetl.worker.secrets.managers.access import Access
from noetl.worker.secrets.oauth2 import Tokens
from noetl.worker.secrets.redact import Secrets


@asynccontextmanager
async def accessing(
    folders: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Access, Secrets]]:
    client, clock, secrets = HttpClient(), SteadyClock(), Secrets()
    tokens = Tokens(client.get, clock, secrets.text)
    try:
        yield Access(client.get, tokens, clock.now, secrets.learn, folders, lambda: environment or {}), secrets
    finally:
        await client.close()
