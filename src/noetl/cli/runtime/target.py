"""Choose between the local store and a server, and connect to the server.

Order: the option, `$NOETL_SERVER_URL`, the context in use, this machine. Tested in
tests/acceptance/servers/test_context_cli.py and tests/client/test_api.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from noetl.cli.runtime.contexts import load_contexts
from noetl.cli.runtime.environment import environment
from noetl.model.errors import InvalidInput
from noetl.settings import SERVER_URL, TOKEN

if TYPE_CHECKING:
    from noetl import Client

_SCHEMES = ("http://", "https://")


class Server(NamedTuple):
    """URL of a server and the token to send."""

    url: str
    token: str | None


def is_server(place: str | None) -> bool:
    """Return whether a place is a server's URL."""
    return place is not None and place.strip().startswith(_SCHEMES)


def server_of(place: str | None) -> Server | None:
    """Return the server that a command uses, or None for the local store."""
    token = environment().get(TOKEN, "").strip() or None
    if place is not None:
        return Server(place, token or _context_token(place)) if is_server(place) else None
    url = environment().get(SERVER_URL, "").strip()
    if url:
        return Server(url, token or _context_token(url))
    contexts, current = load_contexts()
    found = contexts.get(current)
    return None if found is None else Server(found.get("server", ""), token or found.get("token"))


def _context_token(url: str) -> str | None:
    return next((one.get("token") for one in load_contexts()[0].values() if one.get("server") == url), None)


def require_server(place: str | None, hint: str) -> Server:
    """Return the server of a command. Raises InvalidInput if there is none."""
    found = server_of(place)
    if found is None:
        raise InvalidInput(
            f"This command needs a server: use --server URL, NOETL_SERVER_URL or `noetl context use NAME`. {hint}".strip()
        )
    return found


@asynccontextmanager
async def connect(server: Server) -> AsyncIterator[Client]:
    """Open a client of a server."""
    from noetl.client.api import Client

    async with Client(server.url, server.token) as client:
        yield client
