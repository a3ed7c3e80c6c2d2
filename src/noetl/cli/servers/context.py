"""`noetl context`: name servers and choose the one that commands use.

    noetl context add prod http://noetl.example:8082 --token @token.txt
    noetl context use prod          `noetl context use local` returns to this machine

Tested in tests/acceptance/servers/test_context_cli.py.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.completers import complete_context
from noetl.cli.arguments.options import AsJson, Token
from noetl.cli.output.format import to_json
from noetl.cli.runtime.contexts import contexts_file, load_contexts, save_contexts
from noetl.cli.runtime.environment import environment
from noetl.cli.runtime.runner import fail
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput
from noetl.settings import TOKEN

LOCAL: Final = "local"
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Context; `local` is this machine.", autocompletion=complete_context)
]

command = command_group("Name servers and choose the one that commands use.")


@command.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new context.")],
    server: Annotated[
        str, typer.Argument(metavar="URL", help="Server URL, such as http://HOST:8082; several separated by commas.")
    ],
    token: Token = None,
) -> None:
    """Add or replace a context. The first one becomes the one in use."""
    from noetl.client.http import Servers

    try:
        if name == LOCAL:
            raise InvalidInput("`local` is this machine. Choose another name.")
        Servers([part for part in server.split(",") if part.strip()])  # raises for an invalid URL
        contexts, current = load_contexts()
        secret = token or environment().get(TOKEN, "").strip()
        contexts[name] = {"server": server, **({"token": secret} if secret else {})}
        save_contexts(contexts, current or name)
    except InvalidInput as error:
        fail(error)
    echo(f"context {name} is {server}, saved in {contexts_file()}", err=True)


@command.command("use")
def use(name: Name) -> None:
    """Choose the context that commands use."""
    _change(name, remove=False)


@command.command("list")
def list_contexts(json: AsJson = False) -> None:
    """List contexts; `*` marks the one in use."""
    try:
        contexts, current = load_contexts()
    except InvalidInput as error:
        fail(error)
    rows = [{"name": LOCAL, "server": "", "current": not current, "has_token": False}]
    rows += [
        {"name": name, "server": one.get("server", ""), "current": name == current, "has_token": "token" in one}
        for name, one in contexts.items()
    ]
    for row in rows:
        mark = "*" if row["current"] else " "
        shown = row["server"] or "local store"
        echo(to_json(row) if json else f"{mark} {row['name']:<16} {shown}")


@command.command("remove")
def remove(name: Name) -> None:
    """Remove a context."""
    _change(name, remove=True)


def _change(name: str, *, remove: bool) -> None:
    try:
        contexts, current = load_contexts()
        if name != LOCAL and name not in contexts:
            raise InvalidInput(f"No context `{name}`. Known contexts: {', '.join((*contexts, LOCAL))}.")
        if remove:
            contexts.pop(name, None)
            current = "" if current == name else current
        else:
            current = "" if name == LOCAL else name
        save_contexts(contexts, current)
    except InvalidInput as error:
        fail(error)
    echo(f"commands use {current or 'this machine'}", err=True)
