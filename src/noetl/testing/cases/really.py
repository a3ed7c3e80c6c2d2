"""What tools of a test need that really run: themselves, child processes and an HTTP client.

Tested in tests/acceptance/language/test_test_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from noetl.ports import Children, Tools
from noetl.settings import Settings
from noetl.wiring import child_processes, egress_rules, language_kinds


def real_tools() -> Tools:
    """Give the tools that really run."""
    return cast(Tools, language_kinds())


@asynccontextmanager
async def really_running(settings: Settings) -> AsyncIterator[tuple[Children, Callable[..., Any]]]:
    """Give child processes and what makes HTTP requests; both end with this."""
    from noetl.worker.web import HttpClient

    client = HttpClient(egress_rules(settings))
    async with child_processes(settings) as children:
        try:
            yield children, client.get
        finally:
            await client.close()
