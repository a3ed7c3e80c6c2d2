"""`noetl context`: names servers and says which one commands go to.

    noetl context add prod http://noetl.example:8082 --token noetl_…
    noetl context use prod          `noetl context use local` goes back to this machine

Tested in tests/acceptance/test_context_cli.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.common.completers import among, contexts
from noetl.cli.common.contexts import keep, known, place
from noetl.cli.common.store import AsJson, as_json, complain
from noetl.model.errors import InvalidInput

LOCAL = "local"


def command(
    action: Annotated[
        str,
        typer.Argument(
            metavar="add|use|list|remove", help="What to do.", autocompletion=among("add", "use", "list", "remove")
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The context; `local` is this machine.", autocompletion=contexts),
    ] = None,
    server: Annotated[str | None, typer.Argument(metavar="[URL]", help="Of a new context: the server.")] = None,
    token: Annotated[
        str | None, typer.Option("--token", envvar="NOETL_TOKEN", show_envvar=False, help="The token to show it.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Name servers, and say which one commands go to."""
    try:
        if action == "list":
            _list(json)
        elif action not in ("add", "use", "remove"):
            raise InvalidInput(f"`noetl context {action}` is not known: add, use, list or remove.")
        elif not name:
            raise InvalidInput(f"`noetl context {action}` needs a name.")
        else:
            _change(action, name, server, token)
    except InvalidInput as error:
        complain(error)
        raise typer.Exit(error.exit_code) from None


def _change(action: str, name: str, server: str | None, token: str | None) -> None:
    contexts, current = known()
    if action == "add":
        from noetl.client.http import Servers

        if name == LOCAL:
            raise InvalidInput("`local` is this machine; choose another name.")
        if server is None:
            raise InvalidInput(f"a context is a server: `noetl context add {name} http://HOST:8082`.")
        Servers([part for part in server.split(",") if part.strip()])  # refuses what is no address
        contexts[name] = {"server": server, **({"token": token} if token else {})}
        current = current or name
        typer.echo(f"context {name} is {server}, kept in {place()}", err=True)
    elif name != LOCAL and name not in contexts:
        there = ", ".join((*contexts, LOCAL))
        raise InvalidInput(f"there is no context `{name}`; there are: {there}.")
    elif action == "use":
        current = "" if name == LOCAL else name
    else:
        contexts.pop(name, None)
        current = "" if current == name else current
    keep(contexts, current)
    if action != "add":
        typer.echo(f"commands go to {current or 'this machine'}", err=True)


def _list(json: bool) -> None:
    contexts, current = known()
    rows = [{"name": LOCAL, "server": "", "current": not current, "has_token": False}]
    rows += [
        {"name": name, "server": one.get("server", ""), "current": name == current, "has_token": "token" in one}
        for name, one in contexts.items()
    ]
    for row in rows:
        mark = "*" if row["current"] else " "
        shown = row["server"] or "the store of this folder"
        typer.echo(as_json(row) if json else f"{mark} {row['name']:<16} {shown}")
