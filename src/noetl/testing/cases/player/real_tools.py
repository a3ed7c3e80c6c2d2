"""Real tools for tests. Tested in tests/acceptance/language/test_test_cli.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from noetl.ports import Children, Tools
from noetl.settings import Settings
from noetl.wiring.embedded import child_processes, egress_rules, language_kinds


def real_tools() -> Tools:
    return cast(Tools, language_kinds())


@asynccontextmanager
async def really_running(settings: Settings) -> AsyncIterator[tuple[Children, Callable[..., Any]]]:
    """Yield child processes and an HTTP client factory, closed on exit."""
    from noetl.worker.http.clients import HttpClient

    client = HttpClient(egress_rules(settings))
    async with child_processes(settings) as children:
        try:
            yield children, client.get
        finally:
            await client.close()
