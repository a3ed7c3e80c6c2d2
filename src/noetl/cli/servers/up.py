"""`noetl up`: run a server and a worker in one process, on one store.

Tested in tests/server/http/test_serve.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.arguments.options import StorePath, from_file
from noetl.cli.runtime.runner import call
from noetl.cli.servers.serve import Auth, Host, Port
from noetl.cli.servers.worker import Grace


def command(
    host: Host = None,
    port: Port = None,
    auth: Auth = None,
    postgres: Annotated[
        str | None,
        typer.Option(
            "--postgres",
            metavar="URL|@FILE",
            help="PostgreSQL database of the store; `@FILE` reads its URL from a file. "
            "[env: NOETL_DB_URL, NOETL_DB_URL_FILE]",
            callback=from_file,
        ),
    ] = None,
    store: StorePath = None,
    grace: Grace = 30.0,
) -> None:
    """Run a server and a worker in one process."""

    async def job() -> int:
        from noetl.cli.servers.listen import listen

        return await listen(host, port, auth, postgres or store, grace_s=grace)

    raise typer.Exit(call(job, fast=True, service=True))
