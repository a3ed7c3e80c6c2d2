"""Deliver outbox messages while this process drives an execution.

Undelivered messages stay in the store. Tested in tests/acceptance/admin/test_outbox_cli.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from noetl.cli.runtime.terminal import echo
from noetl.model.errors import NoetlError

if TYPE_CHECKING:
    from noetl.server.background.outbox_relay import OutboxRelay
    from noetl.wiring.embedded import Embedded

_INTERVAL_S: Final = 1.0


@asynccontextmanager
async def deliver_outbox(app: Embedded) -> AsyncIterator[None]:
    """Deliver messages; on exit wait for bounded attempts in flight, print counts."""
    used, ended = asyncio.Event(), asyncio.Event()
    app.on_outbox.append(used.set)
    relaying = asyncio.create_task(_relay(app, used, ended), name="noetl-outbox")
    try:
        yield
        if app.settings.publishes_letters:  # dead letters of this run, if any
            used.set()
        if used.is_set():
            ended.set()
            await relaying
    finally:
        app.on_outbox.remove(used.set)
        relaying.cancel()
        with suppress(asyncio.CancelledError):
            await relaying


async def _relay(app: Embedded, used: asyncio.Event, ended: asyncio.Event) -> None:
    await used.wait()
    delivered = 0
    async with app.open_relay() as relay:
        while not ended.is_set():
            delivered += await _drain(relay)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _INTERVAL_S)
        delivered += await _drain(relay)
    await print_outbox(app, delivered)


async def _drain(relay: OutboxRelay) -> int:
    """Try the due messages; an unavailable store is tried again later."""
    try:
        return await relay.drain()
    except NoetlError as error:
        echo(f"noetl: the outbox waits for the store: {error}", err=True)
        return 0


async def print_outbox(app: Embedded, delivered: int) -> None:
    """Print how many messages were delivered, and how to handle the rest."""
    left = await app.outbox().waiting()
    text = f"noetl: outbox: {delivered} delivered"
    if left["pending"]:
        text += f", {left['pending']} pending: send them with `noetl outbox drain` or a server on this store"
    if left["dead"]:
        text += f", {left['dead']} dead: see `noetl outbox list --state dead`, try again with `noetl outbox retry`"
    echo(text, err=True)
