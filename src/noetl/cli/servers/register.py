"""`noetl register`: puts playbooks into a server's catalog, those they call with them; the server checks them first.

Exit code 2 where one has errors; each is then printed. Tested in tests/client/test_register.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.common.store import AsJson, Place, as_json, call


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE|FOLDER…", help="The playbooks; `-` is standard input.")],
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Put playbooks into a server's catalog: files, all below a folder, and those that they call by file."""

    async def job() -> None:

        from noetl.cli.common.target import connected, the_server
        from noetl.cli.playbooks.upload import brought

        async with connected(the_server(server, "`noetl run FILE` runs one here.")) as client:
            for made in await brought(client, files, Path.cwd()):
                typer.echo(as_json(made) if json else f"{made.path} version {made.version} {made.playbook[:16]}")

    call(job)
