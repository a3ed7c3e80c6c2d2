"""Types of credentials: the fields of each, checked when one is stored.

The table holds what tools and the keychain read. Reference page and errors are made of it. Tested in
tests/server/auth/test_credential_types.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from noetl.dsl.diagnostic import did_you_mean

GENERIC: Final = "generic"


class WrongField(NamedTuple):
    """One problem of a credential, with the JSON path in the request."""

    where: str
    message: str
    fix: str


class CredentialField(Struct, frozen=True):
    """One field of a credential; `secret` values are masked under any name."""

    name: str
    about: str
    secret: bool = False
    aliases: tuple[str, ...] = ()


class CredentialType(Struct, frozen=True):
    """A type of credential; at least one field of each group in `needs` is required."""

    name: str
    about: str
    fields: tuple[CredentialField, ...]
    needs: tuple[tuple[str, ...], ...]
    example: Mapping[str, Any]

    def names(self) -> dict[str, str]:
        """Return the field of every name, aliases included."""
        return {name: field.name for field in self.fields for name in (field.name, *field.aliases)}


_field = CredentialField
_TOKEN = _field("token", "Token to send.", secret=True, aliases=("access_token", "bearer"))
_SCHEME = _field("scheme", "Word before the token in the `Authorization` header. Default: `Bearer`.")
_USER = _field("username", "User name.", aliases=("user",))
_PASSWORD = _field("password", "Password.", secret=True)
_KEY = _field("api_key", "Key to send.", secret=True, aliases=("value",))
_HEADER = _field("header", "Header that carries the key. Default: `X-API-Key`.")

_TYPES: Final = (
    CredentialType(
        "postgres",
        "A PostgreSQL database, for the kinds `postgres`, `transfer` and cursors: one address, or its parts.",
        (
            _field("dsn", "Address: `postgresql://user:password@host/name`.", secret=True, aliases=("url", "conninfo")),
            _field("host", "Host name.", aliases=("db_host",)),
            _field("port", "Port. Default: 5432.", aliases=("db_port",)),
            _field("user", "User name.", aliases=("username", "db_user")),
            _field("password", "Password.", secret=True, aliases=("db_password",)),
            _field("dbname", "Database.", aliases=("database", "db_name")),
            _field("sslmode", "`disable`, `prefer`, `require`, `verify-ca` or `verify-full`."),
            _field("data", "Map of these fields; with it, the others are not read."),
        ),
        (("dsn", "host", "dbname", "data"),),
        {"dsn": "postgresql://loader:secret@db.example.org/sales"},
    ),
    CredentialType(
        "bearer",
        "A token for the kind `http`, sent as `Authorization: Bearer …`.",
        (_TOKEN, _SCHEME),
        (("token",),),
        {"token": "a-token"},
    ),
    CredentialType(
        "basic",
        "A user with a password for the kind `http`.",
        (_USER, _PASSWORD),
        (("username",), ("password",)),
        {"username": "loader", "password": "secret"},
    ),
    CredentialType(
        "api_key",
        "A key for the kind `http`, sent in a header.",
        (_KEY, _HEADER),
        (("api_key",),),
        {"api_key": "a-key", "header": "X-API-Key"},
    ),
    CredentialType(
        "http",
        "Any of the three for the kind `http`; a token wins over a user, a user over a key.",
        (_TOKEN, _SCHEME, _USER, _PASSWORD, _KEY, _HEADER),
        (("token", "username", "api_key"),),
        {"token": "a-token"},
    ),
    CredentialType(
        "oauth2",
        "A client of an OAuth2 server. Workers fetch the access token, share it and renew it. `token_url` may be in the "
        "playbook's `keychain` entry instead.",
        (
            _field("token_url", "URL of the token endpoint.", aliases=("endpoint",)),
            _field("grant_type", "Grant. Default: `client_credentials`."),
            _field("client_id", "Id of the client."),
            _field("client_secret", "Secret of the client.", secret=True),
            _field("scope", "Scope to request, as one text."),
            _field("scopes", "Scopes to request, as a list."),
            _field("audience", "Audience of the token."),
            _field("resource", "Resource of the token."),
            _field("refresh_token", "With `grant_type: refresh_token`: the token to exchange.", secret=True),
            _field("username", "With `grant_type: password`: user name."),
            _field("password", "With `grant_type: password`: password.", secret=True),
            _field("assertion", "With a JWT bearer grant: the assertion.", secret=True),
            _field("auth_method", "`basic` sends the client in a header instead of the body."),
            _field("ttl_seconds", "Longest time that a token is used, in seconds."),
            _field("data", "Map of further fields, read like the others."),
        ),
        (("client_id", "refresh_token", "username", "assertion", "data"),),
        {"token_url": "https://auth.example.org/token", "client_id": "loader", "client_secret": "secret"},
    ),
    CredentialType(
        "secret",
        "One value, for `keychain` entries with a `map`.",
        (_field("value", "The secret.", secret=True, aliases=("token",)),),
        (("value",),),
        {"value": "a-secret"},
    ),
    CredentialType(
        GENERIC, "Any fields, unchecked: for python code, and for types that are not listed.", (), (), {"a": "b"}
    ),
)
TYPES: Final[Mapping[str, CredentialType]] = {one.name: one for one in _TYPES}


def problems(kind: str, data: Mapping[str, Any]) -> tuple[WrongField, ...]:
    """Return what is wrong with a credential, by JSON path; values are never shown."""
    known = TYPES.get(kind)
    if known is None:
        message = f"There is no credential type `{kind}`.{did_you_mean(kind, TYPES)}"
        fix = f"Use one of {_listed(TYPES)}; `{GENERIC}` takes any fields."
        return (WrongField("$.kind", message, fix),)
    return () if kind == GENERIC else tuple(_wrong(known, data))


def _wrong(kind: CredentialType, data: Mapping[str, Any]) -> Iterator[WrongField]:
    names = kind.names()
    for name in data:
        if name not in names:
            message = f"A credential of type `{kind.name}` has no field `{name}`.{did_you_mean(name, names)}"
            fix = f"Its fields are {_listed(names)}. For other fields, use the type `{GENERIC}`."
            yield WrongField(f"$.data.{name}", message, fix)
    given = {names[name] for name, value in data.items() if name in names and value not in (None, "")}
    for group in kind.needs:
        if given.isdisjoint(group):
            yield WrongField("$.data", f"A credential of type `{kind.name}` needs {_listed(group, 'or')}.", "Add it.")


def _listed(names: Any, last: str = "and") -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"


def page() -> str:
    """Write the reference page of all types."""
    blocks = []
    for kind in _TYPES:
        rows = [
            f"| {' , '.join(f'`{name}`' for name in (field.name, *field.aliases))} | {'yes' if field.secret else ''} | "
            f"{field.about} |".replace(" , ", ", ")
            for field in kind.fields
        ]
        needs = " ".join(f"Needs {_listed(group, 'or')}." for group in kind.needs)
        table = "\n".join(["| field | secret | what it holds |", "|---|---|---|", *rows]) if rows else ""
        blocks.append("\n\n".join(part for part in (f"## {kind.name}", kind.about, needs, table) if part))
    return "\n\n".join(blocks)
