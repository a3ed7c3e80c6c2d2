"""`noetl credential`: keeps, lists and deletes a server's credentials; what one holds is never shown.

The data is JSON, best from a file or standard input, so that no shell remembers it. Tested in tests/client/test_api.py.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from noetl.cli.common.completers import among
from noetl.cli.common.store import AsJson, Place, as_json, call
from noetl.model.errors import InvalidInput


def command(
    action: Annotated[
        str,
        typer.Argument(metavar="put|list|delete", help="What to do.", autocompletion=among("put", "list", "delete")),
    ],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The name that `auth` uses.")] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="JSON|@FILE|-", help="What it holds; `-` reads standard input.")
    ] = None,
    kind: Annotated[str, typer.Option("--kind", help="What it is for, such as postgres.")] = "generic",
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Keep, list and delete the credentials of a server."""

    async def job() -> None:
        from noetl.cli.common.target import connected, the_server

        otherwise = "A local run takes them from the environment: NOETL_CREDENTIAL_NAME."
        if action not in ("put", "list", "delete"):
            raise InvalidInput(f"`noetl credential {action}` is not known: put, list or delete.")
        if action != "list" and not name:
            raise InvalidInput(f"`noetl credential {action}` needs a name.")
        async with connected(the_server(server, otherwise)) as client:
            if action == "put":
                row = await client.put_credential(str(name), _data(data), kind)
                typer.echo(as_json(row) if json else f"{row.name} version {row.version}")
            elif action == "delete":
                await client.delete_credential(str(name))
                typer.echo(f"credential {name} is deleted", err=True)
            else:
                for row in await client.credentials():
                    typer.echo(as_json(row) if json else f"{row.name:<24} {row.kind:<12} version {row.version}")

    call(job)


def _data(given: str | None) -> dict[str, Any]:
    import json
    import sys
    from pathlib import Path

    if given is None:
        raise InvalidInput("what the credential holds is not given: `--data @FILE`, or `--data -` for standard input.")
    try:
        text = sys.stdin.read() if given == "-" else Path(given[1:]).read_text() if given.startswith("@") else given
        found = json.loads(text)
    except OSError as error:
        raise InvalidInput(f"{given[1:]} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InvalidInput(f"what the credential holds is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise InvalidInput('a credential is a JSON object, such as {"token": "…"}.')
    return found
