"""`noetl token`: create, list, revoke and show API tokens.

A token's secret is printed once, when it is created. Tested in tests/server/http/test_serve.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noetl.cli.admin.user import only_role
from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place, parse_duration
from noetl.cli.output.format import format_time, to_json, to_plain_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo, one_line
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.ports import Token
    from noetl.wire.answers import TokenRow
    from noetl.wiring.embedded import Team

_ROLES: Final = "viewer, operator, editor, admin or worker"

command = command_group(
    "Create, list and revoke API tokens of the local store or of a server; show that of your own server."
)


@command.command("create")
def create(
    role: Annotated[
        list[str] | None,
        typer.Option("--role", metavar="ROLE", help=f"Role of the token: {_ROLES}. Required."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the token's owner, shown in the audit log.")] = "",
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="Lifetime, such as 30d or 12h. [default: never expires]"),
    ] = None,
    pool: Annotated[str | None, typer.Option("--pool", help="For the role worker: restrict it to this pool.")] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace", metavar="PREFIX", help="Limit the role to paths such as team-a/. Repeatable. [default: all]"
        ),
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Create a token and print its secret, which is not shown again."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        only = only_role(role, "A token has one role: create one token for each.")
        if only is None:
            raise InvalidInput(f"No role given. Add --role ROLE: {_ROLES}.")
        expires_s = None if expires is None else parse_duration("--expires", expires)
        server = server_of(store)
        if server is None:
            _print_secret(*await _create(store, only, name, expires_s, pool, namespace or ()), json)
            return
        async with connect(server) as client:
            created = await client.create_token(only, name, expires_s, pool, namespace or ())
        _print_secret(created.token_id, created.role, created.name, created.secret, json)

    call(job)


@command.command("list")
def list_tokens(json: AsJson = False, store: Place = None) -> None:
    """List tokens with their roles, expiry and last use."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        server = server_of(store)
        if server is None:
            async with _open_tokens(store) as team:
                _print_tokens(await team.tokens(), json)
            return
        async with connect(server) as client:
            _print_tokens(await client.tokens(), json)

    call(job)


@command.command("revoke")
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="Token ID, as `noetl token list` prints it.")],
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Revoke a token at once."""

    async def job() -> None:
        from noetl.cli.runtime.target import connect, server_of

        server = server_of(store)
        if server is None:
            await _revoke(store, id)
        else:
            async with connect(server) as client:
                await client.revoke_token(id)
        if json:
            echo(to_json({"token_id": id, "revoked": True}))
        echo(f"revoked token {id}", err=True)

    call(job)


@command.command("show")
def show(store: Place = None) -> None:
    """Print the token of your own server on this machine.

    `noetl up` makes it at its start. Commands find it themselves; other programs send it as `Authorization: Bearer TOKEN`.
    """

    async def job() -> None:
        from noetl.cli.runtime.environment import environment
        from noetl.cli.runtime.target import server_of
        from noetl.client.local_server import local_server
        from noetl.settings import server_settings

        server, own = server_of(store), server_settings(environment())
        url = server.url if server is not None else f"http://{own.host}:{own.port}"
        found = local_server(url)
        if found.token is None:
            raise InvalidInput(
                f"No server of yours with a token at {url}. Start one with `noetl up`, or add --server URL."
            )
        echo(found.token)

    call(job)


@asynccontextmanager
async def _open_tokens(store: str | None) -> AsyncIterator[Team]:
    from noetl.cli.runtime.store import local_settings
    from noetl.wiring.embedded import open_store, open_team

    opened = open_store(local_settings(store))
    try:
        yield open_team(opened)
    finally:
        await opened.close()


async def _create(
    store: str | None, role: str, name: str, expires_s: int | None, pool: str | None, scope: Sequence[str]
) -> tuple[str, str, str, str]:
    from noetl.ports import AuditEntry
    from noetl.server.auth.gate import create_token

    now = int(time() * 1000)
    async with _open_tokens(store) as team:
        token, secret = create_token(role, name, expires_s, pool, "cli", now, scope)
        entry = AuditEntry(
            now,
            "cli",
            "token.create",
            token.token_id,
            {"role": role, "name": name, "namespaces": token.namespaces},
            after=f"valid {role}",
        )
        await team.add_token(token, entry)
    return token.token_id, role, name, secret


async def _revoke(store: str | None, token_id: str) -> None:
    from noetl.ports import AuditEntry

    now = int(time() * 1000)
    async with _open_tokens(store) as team:
        entry = AuditEntry(now, "cli", "token.revoke", token_id, before="valid", after="revoked")
        if not await team.revoke(token_id, now, entry):
            raise InvalidInput(f"No token {token_id}. List tokens with `noetl token list`.")


def _print_secret(token_id: str, role: str, name: str, secret: str, json: bool) -> None:
    if json:
        echo(to_plain_json({"token_id": token_id, "role": role, "name": name, "secret": secret}))
        return
    echo(f"noetl: created token {token_id} with the role {role}. The secret is shown only once:", err=True)
    echo(secret)


def _print_tokens(tokens: Sequence[Token | TokenRow], json: bool) -> None:
    if json:
        for token in tokens:
            shown: dict[str, Any] = {one: getattr(token, one) for one in token.__struct_fields__ if one != "digest"}
            echo(to_json(shown))
        return
    if not tokens:
        echo("no tokens")
    for token in tokens:
        state = "revoked" if token.revoked_at else f"until {format_time(token.expires_at)}" if token.expires_at else ""
        where = " ".join(token.namespaces)
        used = f"used {format_time(token.used_at)}" if token.used_at else "never used"
        about = "  ".join(part for part in (where, state, used) if part)
        echo(one_line(f"{token.token_id}  {token.role:<9} {token.name or '-':<20} {about}"))
