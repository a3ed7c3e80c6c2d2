"""Sends the traces of a control plane while it runs, if the settings say where.

Tested in tests/observe/test_traces.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from logging import getLogger
from typing import TYPE_CHECKING, Protocol

from noetl.engine.plan.plan import Plan
from noetl.extras import install_command
from noetl.model.commit import Commit
from noetl.settings import Settings

if TYPE_CHECKING:
    from noetl.observe.traces.exporter import Events
    from noetl.observe.traces.otlp import OtlpSender

_log = getLogger(__name__)


class Register(Protocol):
    """Adds a callback for commits."""

    def __call__(self, *, commits: Callable[[Sequence[Commit]], None] | None = None) -> None: ...


def open_sender(settings: Settings, endpoint: str) -> OtlpSender | None:
    """Return what sends spans to a receiver; None without the extra `otel`.

    The headers of the settings are for their receiver alone.
    """
    from noetl.masking.readers import ReaderMask
    from noetl.observe.traces.otlp import OtlpSender, is_available

    if not is_available():
        return None
    headers = settings.tracing.headers if endpoint == settings.tracing.endpoint else {}
    return OtlpSender(endpoint, ReaderMask(settings.redact_keys), headers)


@asynccontextmanager
async def send_traces(
    settings: Settings, log: Events, plan: Callable[[str], Awaitable[Plan]], register: Register
) -> AsyncIterator[None]:
    """Send the traces of what is committed while the block runs."""
    if not settings.tracing.is_on:
        yield
        return
    sender = open_sender(settings, settings.tracing.endpoint)
    if sender is None:
        _log.warning("No traces are sent: %s installs what that needs.", install_command("otel"))
        yield
        return
    from noetl.observe.traces.exporter import TraceExporter

    async with sender:
        exporter = TraceExporter(log, plan, sender, settings.tracing)
        register(commits=exporter.committed)
        sending = asyncio.create_task(exporter.run(), name="noetl-traces")
        try:
            yield
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
