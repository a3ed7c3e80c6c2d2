"""`noetl outbox`: list, show, retry, discard and deliver outbox messages.

Tested in tests/acceptance/admin/test_outbox_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import format_time, to_json, to_plain_json
from noetl.cli.runtime.environment import reader_mask
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.ports.outbox import Outbox

_PAGE: Final = 500

Number = Annotated[
    int, typer.Argument(metavar="NUMBER", min=1, help="Message number, as `noetl outbox list` prints it.")
]
OptionalNumber = Annotated[
    int | None,
    typer.Argument(
        metavar="[NUMBER]", min=1, help="Message number, as `noetl outbox list` prints it.", show_default=False
    ),
]

command = command_group("List, show, retry, discard and deliver outbox messages, which are addressed to other systems.")


@command.command("list")
def list_messages(
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help="Only this state: pending, delivered, dead or discarded."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of messages.", min=1, max=1_000)] = 50,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """List messages, newest first."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of
        from noetl.ports.outbox import STATES

        if state is not None and state not in STATES:
            raise InvalidInput(f"Unknown state {state!r}. Use one of: {', '.join(STATES)}.")
        server = server_of(store)
        if server is not None:
            async with connect(server) as client:
                page = await client.outbox(state, limit=limit)
            _print_messages(page.messages, page.pending, page.dead, json)
            return
        async with _open_local(store) as outbox:
            counts = await outbox.waiting()
            _print_messages(await outbox.messages(state, None, limit), counts["pending"], counts["dead"], json)

    call(job)


@command.command("show")
def show(number: Number, json: AsJson = False, store: Place = None) -> None:  # noqa: ARG001 - always JSON
    """Print a message as JSON, with its payload and last error."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        server = server_of(store)
        if server is not None:
            async with connect(server) as client:
                echo(to_json(await client.outbox_message(number)))
            return
        async with _open_local(store) as outbox:
            found = await outbox.message(number)
        if found is None:
            raise InvalidInput(f"No message {number} in the outbox. List messages with `noetl outbox list`.")
        echo(_as_json(found, found.__struct_fields__))

    call(job)


@command.command("retry")
def retry(
    number: OptionalNumber = None,
    dead: Annotated[bool, typer.Option("--dead", help="Retry every dead message.")] = False,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Deliver a message again.

    A server sends it at once, a local store with `noetl outbox drain`.
    """
    call(lambda: _change("retry", number, dead, "", json, store))


@command.command("discard")
def discard(
    number: OptionalNumber = None,
    dead: Annotated[bool, typer.Option("--dead", help="Discard every dead message.")] = False,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Reason, kept in the audit log. Required.")
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Discard a message: it will not be delivered."""

    async def job() -> None:
        _require_selection("discard", number, dead)
        if not (reason or "").strip():
            raise InvalidInput("No reason given. Add --reason TEXT.")
        await _change("discard", number, dead, str(reason), json, store)

    call(job)


@command.command("drain")
def drain(store: Place = None) -> None:
    """Deliver the due messages of a local store now."""

    async def job() -> None:
        from noetl.cli.driver.outbox_delivery import print_outbox
        from noetl.cli.runtime.store import existing, local_settings
        from noetl.cli.runtime.target import server_of
        from noetl.wiring.embedded import embedded

        if server_of(store) is not None:
            raise InvalidInput(
                "A server delivers its messages itself. Send one at once with `noetl outbox retry NUMBER`."
            )
        async with embedded(existing(local_settings(store))) as app:
            async with app.open_relay() as relay:
                delivered = await relay.drain()
            await print_outbox(app, delivered)

    call(job)


@asynccontextmanager
async def _open_local(store: str | None) -> AsyncIterator[Outbox]:
    from noetl.cli.runtime.store import existing, local_settings
    from noetl.wiring.embedded import open_store
    from noetl.wiring.outbox import open_outbox

    opened = open_store(existing(local_settings(store)))
    try:
        yield open_outbox(opened)
    finally:
        await opened.close()


def _require_selection(action: str, number: int | None, dead: bool) -> None:
    if (number is None) is not dead:
        raise InvalidInput(
            f"`noetl outbox {action}` needs a message number, or --dead for every dead message. "
            "List messages with `noetl outbox list`."
        )


async def _change(action: str, number: int | None, dead: bool, reason: str, json: bool, store: str | None) -> None:
    from noetl.cli.runtime.target import connect, server_of

    _require_selection(action, number, dead)
    server = server_of(store)
    if server is None:
        async with _open_local(store) as outbox:
            await _change_local(outbox, action, number, reason, json)
        return
    async with connect(server) as client:

        async def dead_page(before: int | None) -> list[int]:
            return [row.number for row in (await client.outbox("dead", before=before, limit=_PAGE)).messages]

        for one in [number] if number is not None else await _all_pages(dead_page):
            await (client.retry_message(one) if action == "retry" else client.discard_message(one, reason))
            _print_change(one, action, "will be sent again" if action == "retry" else "discarded", json)


async def _change_local(outbox: Outbox, action: str, number: int | None, reason: str, json: bool) -> None:
    from time import time

    from noetl.ports import AuditEntry

    async def dead_page(before: int | None) -> list[int]:
        return [message.number for message in await outbox.messages("dead", before, _PAGE)]

    now = int(time() * 1000)
    for one in [number] if number is not None else await _all_pages(dead_page):
        entry = AuditEntry(now, "cli", f"outbox.{action}", str(one), {"reason": reason} if reason else {})
        if not await (outbox.again(one, now, entry) if action == "retry" else outbox.discard(one, reason, entry)):
            raise InvalidInput(f"No pending or dead message {one}. List messages with `noetl outbox list`.")
        what = "pending again; send it with `noetl outbox drain`" if action == "retry" else "discarded"
        _print_change(one, action, what, json)


async def _all_pages(page: Callable[[int | None], Awaitable[list[int]]]) -> list[int]:
    found: list[int] = []
    while numbers := await page(found[-1] if found else None):
        found += numbers
    return found


def _print_messages(messages: Any, pending: int, dead: int, json: bool) -> None:
    for message in messages:
        if json:
            names = [name for name in message.__struct_fields__ if name not in ("payload", "headers")]
            echo(_as_json(message, names))
        else:
            where = message.address or message.topic
            head = f"{message.number:>6}  {message.state:<9} {message.attempts:>3}  {format_time(message.created_at)}"
            echo(f"{head}  {message.target} {where}  {message.error}".rstrip())
    if not json:
        echo(f"{pending} pending, {dead} dead", err=True)


def _as_json(message: Any, names: Iterable[str]) -> str:
    masked = reader_mask().data(message)  # before it is a map: `key` is a field of NoETL here
    return to_plain_json({name: getattr(masked, name) for name in names})


def _print_change(number: int, action: str, what: str, json: bool) -> None:
    if json:
        echo(to_json({"number": number, "action": action}))
    echo(f"message {number} {what}", err=True)
