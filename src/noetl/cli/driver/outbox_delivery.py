"""Delivers the messages of the outbox from a process that works: while something runs, and what is left when it ends.

Without a server beside it nobody else would. What another attempt may deliver later waits in the store; how it gets out
from there is told. Tested in tests/acceptance/test_outbox_cli.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import typer

from noetl.model.errors import NoetlError

if TYPE_CHECKING:
    from noetl.server.relay import Relay
    from noetl.wiring import Embedded

_EVERY_S = 1.0


@asynccontextmanager
async def delivering(app: Embedded) -> AsyncIterator[None]:
    """Deliver from the first message on; at the end wait for what is under way, and tell what came of it.

    No attempt takes longer than the settings allow, so neither does the end.
    """
    asked, ended = asyncio.Event(), asyncio.Event()
    app.on_outbox.append(asked.set)
    relaying = asyncio.create_task(_relayed(app, asked, ended), name="noetl-outbox")
    try:
        yield
        if app.settings.publishes_letters:  # of what failed here, if anything did
            asked.set()
        if asked.is_set():
            ended.set()
            await relaying
    finally:
        app.on_outbox.remove(asked.set)
        relaying.cancel()
        with suppress(asyncio.CancelledError):
            await relaying


async def _relayed(app: Embedded, asked: asyncio.Event, ended: asyncio.Event) -> None:
    await asked.wait()
    done = 0
    async with app.relaying() as relay:
        while not ended.is_set():
            done += await _drained(relay)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _EVERY_S)
        done += await _drained(relay)
    await told(app, done)


async def _drained(relay: Relay) -> int:
    """Try what is due; a store that cannot be asked now is asked again."""
    try:
        return await relay.drain()
    except NoetlError as error:
        typer.echo(f"noetl: the outbox waits for the store: {error}", err=True)
        return 0


async def told(app: Embedded, done: int) -> None:
    """Tell how many messages were delivered, what is left in the store, and what to do about it."""
    left = await app.outbox().waiting()
    text = f"noetl: outbox: {done} delivered"
    if left["pending"]:
        text += f", {left['pending']} wait: `noetl outbox drain` sends them, or a server on this store"
    if left["dead"]:
        text += f", {left['dead']} dead: `noetl outbox list --state dead` tells why, `noetl outbox retry` tries again"
    typer.echo(text, err=True)
