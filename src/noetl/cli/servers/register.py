"""`noetl register`: register playbooks in a server's catalog.

The server checks them first. Exit code 2: a playbook has errors, which are printed. Tested in tests/client/test_register.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.arguments.options import AsJson, Place, Tolerant
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE|FOLDER…", help="Playbooks or folders; `-` reads stdin.")],
    tolerant: Tolerant = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Register playbooks, and those they call by file, in a server's catalog."""

    async def job() -> None:
        from noetl.cli.output.format import to_json
        from noetl.cli.playbooks.upload import upload
        from noetl.cli.runtime.target import connect, require_server

        async with connect(require_server(server, "`noetl run FILE` runs a playbook on this machine.")) as client:
            for one in await upload(client, files, Path.cwd(), tolerant=tolerant):
                echo(to_json(one) if json else f"{one.path} version {one.version} {one.playbook[:16]}")

    call(job)
