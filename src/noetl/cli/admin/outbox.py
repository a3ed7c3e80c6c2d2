"""`noetl outbox`: lists, shows, retries, discards and delivers the messages of the outbox, of a store or a server.

Tested in tests/acceptance/test_outbox_cli.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.completers import among
from noetl.cli.common.store import AsJson, Place, as_json, call, local_settings
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.cli.common.target import Server
    from noetl.ports.outbox import Outbox
    from noetl.wiring import Embedded

_PAGE = 500
_ACTIONS = ("list", "show", "retry", "discard", "drain")


def command(
    action: Annotated[
        str,
        typer.Argument(metavar="list|show|retry|discard|drain", help="What to do.", autocompletion=among(*_ACTIONS)),
    ],
    number: Annotated[int | None, typer.Argument(metavar="[NUMBER]", help="The message.", min=1)] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="pending|delivered|dead|discarded", help="With list: only messages like this."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="With list: how many.", min=1, max=1_000)] = 50,
    reason: Annotated[str | None, typer.Option("--reason", help="With discard: why it is given up.")] = None,
    dead: Annotated[bool, typer.Option("--dead", help="With retry and discard: every dead message.")] = False,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Look after the messages for other systems: list, show, retry, discard; drain delivers those of a local store now."""

    async def job() -> None:
        from noetl.cli.common.target import server_of

        _check(action, number, state, reason, dead)
        server = server_of(store)
        if server is not None:
            await _there(server, action, number, state, limit, reason or "", json)
        else:
            await _here(store, action, number, state, limit, reason or "", json)

    call(job)


def _check(action: str, number: int | None, state: str | None, reason: str | None, dead: bool) -> None:
    from noetl.ports.outbox import STATES

    if action not in _ACTIONS:
        raise InvalidInput(f"`noetl outbox {action}` is not known: {', '.join(_ACTIONS)}.")
    if action in ("show", "retry", "discard") and (number is None) is not (dead and action != "show"):
        every = "" if action == "show" else ", or `--dead` for every dead one"
        raise InvalidInput(
            f"`noetl outbox {action}` needs the number of a message{every}; `noetl outbox list` lists them."
        )
    if action == "discard" and not (reason or "").strip():
        raise InvalidInput("`noetl outbox discard` needs a reason: --reason TEXT.")
    if state is not None and state not in STATES:
        raise InvalidInput(f"`--state {state}` is not known: {', '.join(STATES)}.")


async def _there(
    server: Server, action: str, number: int | None, state: str | None, limit: int, reason: str, json: bool
) -> None:
    """Do it on a server."""
    from noetl.cli.common.target import connected

    async with connected(server) as client:
        if action == "drain":
            raise InvalidInput(
                "a server delivers its messages by itself; `noetl outbox retry NUMBER` sends one at once."
            )
        if action == "list":
            found = await client.outbox(state, limit=limit)
            _listed(found.messages, found.pending, found.dead, json)
        elif action == "show":
            typer.echo(as_json(await client.outbox_message(number or 0)))
        else:

            async def dead(before: int | None) -> list[int]:
                return [row.number for row in (await client.outbox("dead", before=before, limit=_PAGE)).messages]

            for one in [number] if number is not None else await _every(dead):
                await (client.retry_message(one) if action == "retry" else client.discard_message(one, reason))
                _told(one, "is sent again" if action == "retry" else "is discarded")


async def _here(
    store: str | None, action: str, number: int | None, state: str | None, limit: int, reason: str, json: bool
) -> None:
    """Do it on the store of this machine."""
    from noetl.wiring import embedded, open_store
    from noetl.wiring_outbox import open_outbox

    settings = local_settings(store)
    if action == "drain":
        async with embedded(settings) as app:
            await _deliver(app)
        return
    held = open_store(settings)
    try:
        outbox = open_outbox(held)
        if action == "list":
            waiting = await outbox.waiting()
            _listed(await outbox.messages(state, None, limit), waiting["pending"], waiting["dead"], json)
        elif action == "show":
            found = await outbox.message(number or 0)
            if found is None:
                raise InvalidInput(f"the outbox has no message {number}; `noetl outbox list` lists them.")
            typer.echo(as_json({name: getattr(found, name) for name in found.__struct_fields__}))
        else:
            await _steer(outbox, action, number, reason)
    finally:
        await held.close()


async def _every(page: Callable[[int | None], Awaitable[list[int]]]) -> list[int]:
    """Gather the numbers of all pages."""
    found: list[int] = []
    while numbers := await page(found[-1] if found else None):
        found += numbers
    return found


async def _steer(outbox: Outbox, action: str, number: int | None, reason: str) -> None:
    from time import time

    from noetl.ports import AuditEntry

    async def dead(before: int | None) -> list[int]:
        return [message.number for message in await outbox.messages("dead", before, _PAGE)]

    now = int(time() * 1000)
    for one in [number] if number is not None else await _every(dead):
        act = AuditEntry(now, "cli", f"outbox.{action}", str(one), {"reason": reason} if reason else {})
        if not await (outbox.again(one, now, act) if action == "retry" else outbox.discard(one, reason, act)):
            raise InvalidInput(
                f"the outbox has no message {one} that waits or is dead; `noetl outbox list` lists them."
            )
        _told(one, "waits to be sent again; `noetl outbox drain` sends it" if action == "retry" else "is discarded")


async def _deliver(app: Embedded) -> None:
    """Deliver what is due now, and tell what came of it."""
    from noetl.cli.driver.outbox_delivery import told

    async with app.relaying() as relay:
        done = await relay.drain()
    await told(app, done)


def _listed(messages: Any, pending: int, dead: int, json: bool) -> None:
    from noetl.cli.output.progress import clock

    for message in messages:
        if json:
            names = [name for name in message.__struct_fields__ if name not in ("payload", "headers")]
            typer.echo(as_json({name: getattr(message, name) for name in names}))
        else:
            where = message.address or message.topic
            head = f"{message.number:>6}  {message.state:<9} {message.attempts:>3}  {clock(message.created_at)}"
            typer.echo(f"{head}  {message.target} {where}  {message.error}".rstrip())
    if not json:
        typer.echo(f"{pending} pending, {dead} dead", err=True)


def _told(number: int, what: str) -> None:
    typer.echo(f"message {number} {what}", err=True)
