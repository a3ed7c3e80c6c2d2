"""Tokens of the servers that this user runs on this machine.

A server on loopback makes a new token at each start and keeps it in a file that only its user can read, named after the
address, until it stops. Clients of the same user read it, so nothing has to be configured, and other users of the machine
stay outside. A file that a killed server left behind is worth nothing: the next server has another token. Tested in
tests/client/test_local_server.py and tests/server/http/test_local_token.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from noetl.model.errors import InvalidInput
from noetl.private_files import write_private

_LOCALHOST: Final = ("127.0.0.1", "::1")


class LocalServer(NamedTuple):
    """Address to connect to, and the token of the server there, if it is this user's."""

    url: str
    token: str | None = None
    file: Path | None = None


def state_folder() -> Path:
    """Return the folder for states of this user's processes."""
    home = os.environ.get("XDG_STATE_HOME", "").strip()
    return Path(home or os.path.expanduser("~/.local/state")) / "noetl"


def token_folder() -> Path:
    """Return the folder of the token files."""
    return state_folder() / "servers"


def local_server(url: str) -> LocalServer:
    """Return the server of this user at an address on this machine.

    `localhost` becomes the address that has a token: else another user could listen on its other address.
    """
    try:
        parts = urlsplit(url)
        hosts = _LOCALHOST if parts.hostname == "localhost" else (str(ip_address(parts.hostname or "")),)
        for host in hosts:
            if parts.scheme == "http" and ip_address(host).is_loopback:
                file = _file(host, parts.port or 80)
                token = file.read_text(encoding="ascii").strip() if file.is_file() else ""
                if token:
                    shown = f"[{host}]" if ":" in host else host
                    return LocalServer(parts._replace(netloc=f"{shown}:{parts.port or 80}").geturl(), token, file)
    except (ValueError, OSError):  # no address of this machine, or no readable file
        pass
    return LocalServer(url)


@contextmanager
def offered_token(host: str, port: int) -> Iterator[str]:
    """Make a token for a server at an address; its file is removed at the end."""
    token, file = f"noetl_local_{token_urlsafe(32)}", _file(host, port)
    try:
        if not file.is_absolute():  # the user has no home
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        write_private(file, f"{token}\n")
    except OSError as error:
        raise InvalidInput(
            f"Cannot write the token of this server to {file.parent}: {error.strerror}. "
            "Set XDG_STATE_HOME to a folder that you can write to, or use API tokens (`--auth token`)."
        ) from None
    try:
        yield token
    finally:
        with suppress(OSError):
            if file.read_text(encoding="ascii").strip() == token:  # else it is of the server that came after
                file.unlink()


def _file(host: str, port: int) -> Path:
    return token_folder() / f"{host}-{port}.token"
