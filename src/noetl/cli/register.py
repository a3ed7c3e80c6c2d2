"""`noetl register`: puts playbooks into a server's catalog; it checks them first.

Exit code 2 where one has errors; each is then printed. Tested in tests/client/test_api.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.store import AsJson, Place, as_json, call


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="The playbooks; `-` is standard input.")],
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Put playbooks into a server's catalog."""

    async def job() -> None:
        from noetl.cli.files import FileTrouble, read_playbook
        from noetl.cli.target import connected, the_server
        from noetl.model.errors import InvalidInput

        async with connected(the_server(server, "`noetl run FILE` runs one here.")) as client:
            for name in files:
                troubles: list[FileTrouble] = []
                content = read_playbook(name, troubles)
                if content is None:
                    raise InvalidInput(troubles[0].message)
                made = await client.register(content.decode("utf-8-sig", "replace"))
                typer.echo(as_json(made) if json else f"{made.path} version {made.version} {made.playbook[:16]}")

    call(job)
