"""`noetl token`: makes, lists and revokes the API tokens of a store, on the machine that has the store.

A secret is printed once, when it is made. Tested in tests/server/test_serve.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.completers import among
from noetl.cli.common.store import AsJson, Place, as_json, call, local_settings
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.cli.common.target import Server
    from noetl.ports import Token
    from noetl.wire.answers import TokenRow
    from noetl.wiring import Team

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def command(
    action: Annotated[
        str,
        typer.Argument(
            metavar="create|list|revoke", help="What to do.", autocompletion=among("create", "list", "revoke")
        ),
    ],
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The token to revoke.")] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="viewer|operator|editor|admin|worker", help="What it may.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Who has it; the audit trail names it so.")] = "",
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="How long it is good: 30d, 12h. For ever without it."),
    ] = None,
    pool: Annotated[str | None, typer.Option("--pool", help="Of a worker's token: the one pool it is for.")] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Make, list and revoke the API tokens of a store."""

    async def job() -> None:
        from noetl.cli.common.target import server_of
        from noetl.wiring import open_store, open_team

        if action not in ("create", "list", "revoke"):
            raise InvalidInput(f"`noetl token {action}` is not known: create, list or revoke.")
        server = server_of(store)
        if server is not None:
            return await _there(server, action, id, role, name, _seconds(expires), pool, json)
        held = open_store(local_settings(store))
        opened = open_team(held)
        try:
            if action == "create":
                await _create(opened, role, name, expires, pool, json)
            elif action == "list":
                _listed(await opened.tokens(), json)
            else:
                await _revoke(opened, id)
        finally:
            await held.close()

    call(job)


async def _there(
    server: Server,
    action: str,
    id: str | None,
    role: str | None,
    name: str,
    expires_s: int | None,
    pool: str | None,
    json: bool,
) -> None:
    """Do it on a server."""
    from noetl.cli.common.target import connected

    async with connected(server) as client:
        if action == "create":
            made = await client.create_token(_role(role), name, expires_s, pool)
            _made(made.token_id, made.role, made.name, made.secret, json)
        elif action == "list":
            _listed(await client.tokens(), json)
        else:
            await client.revoke_token(id or "")
            typer.echo(f"token {id} is revoked", err=True)


def _role(given: str | None) -> str:
    if given is None:
        raise InvalidInput("a token has a role: `noetl token create --role viewer|operator|editor|admin|worker`.")
    return given


def _made(token_id: str, role: str, name: str, secret: str, json: bool) -> None:
    if json:
        typer.echo(as_json({"token_id": token_id, "role": role, "name": name, "secret": secret}))
        return
    typer.echo(f"noetl: token {token_id} with the role {role}; this is the only time it is shown:", err=True)
    typer.echo(secret)


async def _create(opened: Team, role: str | None, name: str, expires: str | None, pool: str | None, json: bool) -> None:
    from time import time

    from noetl.ports import AuditEntry
    from noetl.server.tokens import made

    role = _role(role)
    now = int(time() * 1000)
    token, secret = made(role, name, _seconds(expires), pool, "cli", now)
    act = AuditEntry(now, "cli", "token.create", token.token_id, {"role": role, "name": name})
    await opened.add_token(token, act)
    _made(token.token_id, role, name, secret, json)


def _listed(tokens: Sequence[Token | TokenRow], json: bool) -> None:
    from noetl.cli.output.progress import clock

    if json:
        for token in tokens:
            shown: dict[str, Any] = {one: getattr(token, one) for one in token.__struct_fields__ if one != "digest"}
            typer.echo(as_json(shown))
        return
    if not tokens:
        typer.echo("no tokens")
    for token in tokens:
        state = "revoked" if token.revoked_at else f"until {clock(token.expires_at)}" if token.expires_at else ""
        typer.echo(f"{token.token_id}  {token.role:<9} {token.name or '-':<20} {state}".rstrip())


async def _revoke(opened: Team, given: str | None) -> None:
    from time import time

    from noetl.ports import AuditEntry

    now = int(time() * 1000)
    if given is None or not await opened.revoke(given, now, AuditEntry(now, "cli", "token.revoke", given)):
        raise InvalidInput(f"there is no token {given or '(none was named)'}; `noetl token list` lists them.")
    typer.echo(f"token {given} is revoked", err=True)


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)([smhdw])", text.strip())
    if found is None or not int(found[1]):
        raise InvalidInput(f"`--expires {text}` is no time: write 30d, 12h, 90m, 60s or 2w.")
    return int(found[1]) * _UNITS[found[2]]
