"""`noetl serve`: runs the server until it is told to stop; what is under way then is answered first.

Tested in tests/server/test_serve.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.common.store import StorePath, call

Host = Annotated[
    str | None,
    typer.Option("--host", help="The address to listen on; 127.0.0.1, unless NOETL_HOST says another."),
]
Port = Annotated[
    int | None, typer.Option("--port", min=0, max=65535, help="The port; 8082, unless NOETL_PORT says so.")
]
Auth = Annotated[
    str | None,
    typer.Option(
        "--auth", metavar="auto|none|token", help="Whether to ask for tokens; `auto` asks where others reach it."
    ),
]


def command(
    host: Host = None,
    port: Port = None,
    auth: Auth = None,
    db: Annotated[
        str | None,
        typer.Option("--db", metavar="URL", help="A PostgreSQL database as the store; several servers share it."),
    ] = None,
    store: StorePath = None,
) -> None:
    """Run the server."""

    async def job() -> int:
        from noetl.cli.servers.listen import listen

        return await listen(host, port, auth, db or store, works=False)

    raise typer.Exit(call(job, fast=True))
