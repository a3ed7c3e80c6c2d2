"""Where a command goes: to the store of this machine, or to a server.

The order: what the command was given, `$NOETL_SERVER_URL`, the context in use, this machine. Tested in
tests/acceptance/test_context_cli.py and tests/client/test_api.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from noetl.cli.common.environment import environment
from noetl.model.errors import InvalidInput
from noetl.settings import SERVER_URL, TOKEN

if TYPE_CHECKING:
    from noetl import Client
    from noetl.model.messages import AnyMessage
    from noetl.wire.answers import Told

_SCHEMES = ("http://", "https://")


class Server(NamedTuple):
    """A server, and what to show it."""

    url: str
    token: str | None


def is_server(place: str | None) -> bool:
    """Tell whether a place is a server's address."""
    return place is not None and place.strip().startswith(_SCHEMES)


def server_of(place: str | None) -> Server | None:
    """Give the server that a command goes to; None where that is the store of this machine."""
    token = environment().get(TOKEN, "").strip() or None
    if place is not None:
        return Server(place, token or _token_of(place)) if is_server(place) else None
    url = environment().get(SERVER_URL, "").strip()
    if url:
        return Server(url, token or _token_of(url))
    from noetl.cli.common.contexts import known

    contexts, current = known()
    found = contexts.get(current)
    return None if found is None else Server(found.get("server", ""), token or found.get("token"))


def _token_of(url: str) -> str | None:
    """Give the token that a context has for a server."""
    from noetl.cli.common.contexts import known

    return next((one.get("token") for one in known()[0].values() if one.get("server") == url), None)


def the_server(place: str | None, otherwise: str) -> Server:
    """Give the server that a command goes to. Raises InvalidInput where there is none, and tells what to do otherwise."""
    found = server_of(place)
    if found is None:
        raise InvalidInput(
            f"this needs a server: `--server URL`, NOETL_SERVER_URL, or `noetl context use NAME`. {otherwise}"
        )
    return found


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Client]:
    """Give a client of a server."""
    from noetl.client.api import Client

    async with Client(server.url, server.token) as client:
        yield client


async def told(client: Client, execution_id: str, message: AnyMessage) -> Told:
    """Give an execution on a server a message."""
    from noetl.model.messages import Cancel, Pause, Resume, Signal

    if isinstance(message, Signal):
        return await client.signal(execution_id, message.name, message.data, idempotency_key=message.message_id)
    if isinstance(message, Cancel):
        asked = {"compensate": message.compensate, "abandon": message.abandon}
        return await client.cancel(execution_id, message.reason, message.run_id, **asked)
    if isinstance(message, Pause):
        return await client.pause(execution_id)
    assert isinstance(message, Resume)
    return await client.resume(execution_id)
