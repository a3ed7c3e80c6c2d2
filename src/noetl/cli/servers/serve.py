"""`noetl serve`: run the server until it is stopped.

Tested in tests/server/http/test_serve.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.arguments.options import StorePath
from noetl.cli.runtime.runner import call

Host = Annotated[
    str | None, typer.Option("--host", help="Address to listen on. [env: NOETL_HOST] [default: 127.0.0.1]")
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes any. [env: NOETL_PORT] [default: 8082]"),
]
Auth = Annotated[
    str | None,
    typer.Option(
        "--auth",
        metavar="auto|none|token",
        help="Require API tokens, or `none` on loopback; with `auto` a server on loopback has a token for your own commands. "
        "[env: NOETL_AUTH] [default: auto]",
    ),
]


def command(
    host: Host = None,
    port: Port = None,
    auth: Auth = None,
    store: StorePath = None,
) -> None:
    """Run the server: the API and the queue for remote workers.

    Servers on one PostgreSQL database share its executions. They need the same key for stored credentials:
    `noetl credential key` prints one for NOETL_ENCRYPTION_KEY. `noetl token create` creates API tokens.
    """

    async def job() -> int:
        from noetl.cli.servers.listen import listen

        return await listen(host, port, auth, store)

    raise typer.Exit(call(job, fast=True, service=True))
