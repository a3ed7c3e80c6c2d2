"""Types of credentials: the fields of each, checked when one is stored.

The table holds what tools and the keychain read. Reference page and errors are made of it. Tested in
tests/server/auth/test_credential_types.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from noetl.dsl.diagnostic import did_you_mean

GENERIC: Final = "generic"
_LONGEST_NAME: Final = 200
# Each may be a template, which the keychain renders.
_URL: Final = re.compile(r"https?://[^\s/]|\{\{")
_DSN: Final = re.compile(r"\s*\w[\w+.-]*://\S|\s*\w+\s*=|\{\{")
_GRANT: Final = re.compile(r"[A-Za-z][\w.:/+-]*\Z|\{\{")


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
    form: str = ""  # of its value, if it is no text: a key of `_FORMS`
    choices: tuple[str, ...] = ()


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
_TEST_URL = _field("test_url", "URL that `noetl credential test` requests with this credential.", form="url")
_HOST = _field("host", "Host name.")
_DATABASE = _field("database", "Database.", aliases=("dbname", "db_name"))
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_KEY_FILE = (
    _field("service_account_json", "Key file of the account, as text or as a map.", secret=True, form="key_file"),
    _field("client_email", "Address of the account, if the fields of its key file are given one by one."),
    _field("private_key", "Private key of the account, in PEM.", secret=True),
    _field("private_key_id", "Id of the private key."),
    _field("token_uri", "URL of the token endpoint. Default: `https://oauth2.googleapis.com/token`.", form="url"),
    _field("project_id", "Project of the account.", aliases=("project",)),
    _field("client_id", "Id of the account."),
    _field("type", "Always `service_account`, as in the key file."),
    _field("auth_uri", "As in the key file; not read."),
    _field("auth_provider_x509_cert_url", "As in the key file; not read."),
    _field("client_x509_cert_url", "As in the key file; not read."),
    _field("universe_domain", "As in the key file; not read."),
)

_TYPES: Final = (
    CredentialType(
        "postgres",
        "A PostgreSQL database, for the kinds `postgres`, `transfer` and cursors: one address, or its parts.",
        (
            _field(
                "dsn",
                "Address: `postgresql://user:password@host/name`.",
                secret=True,
                aliases=("url", "conninfo"),
                form="dsn",
            ),
            _field("host", "Host name.", aliases=("db_host",)),
            _field("port", "Port. Default: 5432.", aliases=("db_port",), form="port"),
            _field("user", "User name.", aliases=("username", "db_user")),
            _field("password", "Password.", secret=True, aliases=("db_password",)),
            _field("dbname", "Database.", aliases=("database", "db_name")),
            _field("sslmode", "How the connection is encrypted.", choices=_SSL_MODES),
            _field("data", "Map of these fields; with it, the others are not read.", form="map"),
        ),
        (("dsn", "host", "dbname", "data"),),
        {"dsn": "postgresql://loader:secret@db.example.org/sales"},
    ),
    CredentialType(
        "mysql",
        "A MySQL or MariaDB database: one address, or its parts.",
        (
            _field("dsn", "Address: `mysql://user:password@host/name`.", secret=True, aliases=("url",), form="dsn"),
            _HOST,
            _field("port", "Port. Default: 3306.", form="port"),
            _field("user", "User name.", aliases=("username",)),
            _PASSWORD,
            _DATABASE,
        ),
        (("dsn", "host"),),
        {"host": "db.example.org", "user": "loader", "password": "secret", "database": "sales"},
    ),
    CredentialType(
        "sqlite",
        "A SQLite file on the worker's machine.",
        (_field("path", "Path of the file.", aliases=("database", "file")),),
        (("path",),),
        {"path": "/data/sales.db"},
    ),
    CredentialType(
        "snowflake",
        "A Snowflake account: a user with a password or with a private key.",
        (
            _field("account", "Account identifier.", aliases=("sf_account",)),
            _field("user", "User name.", aliases=("username", "sf_user")),
            _field("password", "Password.", secret=True, aliases=("sf_password",)),
            _field("private_key", "Private key, in PEM.", secret=True, aliases=("sf_private_key",)),
            _field("private_key_passphrase", "Passphrase of the private key.", secret=True),
            _field("warehouse", "Warehouse of the session.", aliases=("sf_warehouse",)),
            _field("database", "Database of the session.", aliases=("sf_database",)),
            _field("schema", "Schema of the session.", aliases=("sf_schema",)),
            _field("role", "Role of the session.", aliases=("sf_role",)),
            _field("authenticator", "Authenticator of the driver."),
        ),
        (("account",), ("user",), ("password", "private_key")),
        {"account": "acme-eu1", "user": "LOADER", "password": "secret", "warehouse": "LOAD"},
    ),
    CredentialType(
        "bearer",
        "A token for the kind `http`, sent as `Authorization: Bearer …`.",
        (_TOKEN, _SCHEME, _TEST_URL),
        (("token",),),
        {"token": "a-token"},
    ),
    CredentialType(
        "basic",
        "A user with a password for the kind `http`.",
        (_USER, _PASSWORD, _TEST_URL),
        (("username",), ("password",)),
        {"username": "loader", "password": "secret"},
    ),
    CredentialType(
        "api_key",
        "A key for the kind `http`, sent in a header.",
        (_KEY, _HEADER, _TEST_URL),
        (("api_key",),),
        {"api_key": "a-key", "header": "X-API-Key"},
    ),
    CredentialType(
        "http",
        "Any of the three for the kind `http`; a token wins over a user, a user over a key.",
        (_TOKEN, _SCHEME, _USER, _PASSWORD, _KEY, _HEADER, _TEST_URL),
        (("token", "username", "api_key"),),
        {"token": "a-token"},
    ),
    CredentialType(
        "oauth2",
        "A client of an OAuth2 server. Workers fetch the access token, share it and renew it. `token_url` may be in the "
        "playbook's `keychain` entry instead.",
        (
            _field("token_url", "URL of the token endpoint.", aliases=("endpoint",), form="url"),
            _field("grant_type", "Grant: a name or a URI. Default: `client_credentials`.", form="grant"),
            _field("client_id", "Id of the client."),
            _field("client_secret", "Secret of the client.", secret=True),
            _field("scope", "Scope to request, as one text."),
            _field("scopes", "Scopes to request, as a list.", form="list"),
            _field("audience", "Audience of the token."),
            _field("resource", "Resource of the token."),
            _field("refresh_token", "With `grant_type: refresh_token`: the token to exchange.", secret=True),
            _field("username", "With `grant_type: password`: user name."),
            _field("password", "With `grant_type: password`: password.", secret=True),
            _field("assertion", "With a JWT bearer grant: the assertion.", secret=True),
            _field(
                "auth_method",
                "Where the client is sent: in a header, or in the body (the default).",
                choices=("basic", "body"),
            ),
            _field("ttl_seconds", "Longest time that a token is used, in seconds.", form="seconds"),
            _field("data", "Map of further fields, read like the others.", form="map"),
        ),
        (("client_id", "refresh_token", "username", "assertion", "data"),),
        {"token_url": "https://auth.example.org/token", "client_id": "loader", "client_secret": "secret"},
    ),
    CredentialType(
        "service_account",
        "A service account of Google Cloud: its key file as text, or the fields of the file.",
        (*_KEY_FILE, _field("scopes", "Scopes to request, as a list.", form="list")),
        (("service_account_json", "client_email"), ("service_account_json", "private_key")),
        {"client_email": "loader@acme.iam.gserviceaccount.com", "private_key": "-----BEGIN PRIVATE KEY-----"},
    ),
    CredentialType(
        "s3",
        "Keys of AWS, or of a store that speaks S3. For AWS services, secret managers included.",
        (
            _field("access_key_id", "Id of the access key.", aliases=("key_id", "aws_access_key_id")),
            _field(
                "secret_access_key", "The access key.", secret=True, aliases=("secret_key", "aws_secret_access_key")
            ),
            _field("session_token", "Token of temporary keys.", secret=True, aliases=("aws_session_token",)),
            _field("region", "Region. Default: `us-east-1`.", aliases=("region_name", "aws_region")),
            _field("endpoint", "URL of a service other than AWS's.", aliases=("endpoint_url",), form="url"),
            _field("bucket", "Bucket."),
            _field("url_style", "How a bucket is addressed.", choices=("path", "vhost")),
        ),
        (("access_key_id",), ("secret_access_key",)),
        {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "secret", "region": "eu-central-1"},
    ),
    CredentialType(
        "gcs",
        "Google Cloud Storage: HMAC keys, or a service account.",
        (
            _field("key_id", "Id of the HMAC key.", aliases=("access_key_id",)),
            _field("secret_key", "The HMAC key.", secret=True, aliases=("secret_access_key",)),
            _field("bucket", "Bucket."),
            *_KEY_FILE,
        ),
        (("key_id", "service_account_json", "client_email"), ("secret_key", "service_account_json", "private_key")),
        {"key_id": "GOOGEXAMPLE", "secret_key": "secret"},
    ),
    CredentialType(
        "azure",
        "An application of Microsoft Entra, or a storage account.",
        (
            _field("tenant_id", "Tenant of the application."),
            _field("client_id", "Id of the application."),
            _field("client_secret", "Secret of the application.", secret=True),
            _field("authority", "URL of the sign-in. Default: `https://login.microsoftonline.com`.", form="url"),
            _field("account_name", "Storage account.", aliases=("account",)),
            _field("account_key", "Key of the storage account.", secret=True),
            _field("sas_token", "Shared access signature.", secret=True),
            _field("connection_string", "Connection string of the storage account.", secret=True),
        ),
        (
            ("tenant_id", "account_name", "connection_string"),
            ("client_secret", "account_key", "sas_token", "connection_string"),
        ),
        {"tenant_id": "acme", "client_id": "loader", "client_secret": "secret"},
    ),
    CredentialType(
        "nats",
        "A NATS server.",
        (
            _field("url", "URL: `nats://host:4222`; several as a list.", aliases=("servers", "nats_url"), form="list"),
            _field("user", "User name.", aliases=("username", "nats_user")),
            _field("password", "Password.", secret=True, aliases=("nats_password",)),
            _field("token", "Token.", secret=True),
            _field("credentials", "Content of a `.creds` file.", secret=True, aliases=("creds",)),
            _field("nkey_seed", "Seed of an NKey.", secret=True),
        ),
        (("url",),),
        {"url": "nats://nats.example.org:4222", "user": "loader", "password": "secret"},
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


def name_problem(name: str) -> WrongField | None:
    """Return why a credential cannot have this name: it stands in URLs and in lists."""
    is_short = 0 < len(name) <= _LONGEST_NAME
    if is_short and name.isprintable() and not set(name) & set(" /\\") and name.strip("."):
        return None
    shown = ascii(name[:40])[1:-1] + ("…" if len(name) > 40 else "")
    message = (
        f"`{shown}` cannot be the name of a credential. A name has 1 to {_LONGEST_NAME} characters, none of them a space, "
        "a slash, a backslash or a control character, and not only dots."
    )
    return WrongField("name", message, "Use a name such as `pg_main`.")


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
    fields = {field.name: field for field in kind.fields}
    for name, value in data.items():
        if name in names and value not in (None, ""):
            yield from _wrong_value(kind, name, fields[names[name]], value)
    given = {names[name] for name, value in data.items() if name in names and value not in (None, "")}
    for group in kind.needs:
        if given.isdisjoint(group):
            yield WrongField("$.data", f"A credential of type `{kind.name}` needs {_listed(group, 'or')}.", "Add it.")


def _wrong_value(
    kind: CredentialType, name: str, field: CredentialField, value: Any, within: str = "$.data"
) -> Iterator[WrongField]:
    """Yield why a value cannot be right. The value itself is never shown."""
    where, about = f"{within}.{name}", f"`{name}` of a credential of type `{kind.name}`"
    if field.choices and (not isinstance(value, str) or value not in field.choices):
        yield WrongField(
            where, f"{about} is none of {_listed(field.choices)}.", f"Use one of {_listed(field.choices)}."
        )
        return
    form = _FORMS[field.form]
    if not form.is_right(value):
        yield WrongField(where, f"{about} is no {form.what}.", form.fix)
    elif field.form == "map":
        names = {one: known for known in kind.fields for one in (known.name, *known.aliases) if known is not field}
        for one, inner in value.items():
            if one in names and inner not in (None, ""):
                yield from _wrong_value(kind, one, names[one], inner, where)


def _is_text(value: Any) -> bool:
    """Return whether a value can be sent as a text; a password may be a number."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_port(value: Any) -> bool:
    return str(value).isascii() and str(value).isdigit() and 0 < int(str(value)[:6]) < 65536


def _is_duration(value: Any) -> bool:
    try:
        return _is_text(value) and 0 <= float(value) < 1e12
    except (ValueError, OverflowError):
        return isinstance(value, str) and "{{" in value


def _is_list(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value))


def _is_key_file(value: Any) -> bool:
    """Return whether a value is a key file, as text or as a map."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return False
    return isinstance(value, Mapping) and all(
        value.get(name) and isinstance(value[name], str) for name in ("client_email", "private_key")
    )


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.match(value) is not None


class _Form(NamedTuple):
    what: str
    fix: str
    is_right: Callable[[Any], bool]


_FORMS: Final[Mapping[str, _Form]] = {
    "": _Form("text", "Use a text.", _is_text),
    "port": _Form("port", "Use a number from 1 to 65535.", _is_port),
    "url": _Form("URL", "Use a URL that begins with `https://` or `http://`.", _matches(_URL)),
    "dsn": _Form("address", "Use a URL, such as `postgresql://user:password@host/name`.", _matches(_DSN)),
    "grant": _Form("grant", "Use a name or a URI, such as `client_credentials`.", _matches(_GRANT)),
    "seconds": _Form("number of seconds", "Use a number that is at least 0.", _is_duration),
    "list": _Form("list of texts", "Use a text, or a list of texts.", _is_list),
    "map": _Form("map", "Use a map with the names of fields.", lambda value: isinstance(value, Mapping)),
    "key_file": _Form(
        "key file of a service account, which is a JSON object with `client_email` and `private_key`",
        "Use the content of the key file.",
        _is_key_file,
    ),
}


def _listed(names: Any, last: str = "and") -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"


def page() -> str:
    """Write the reference page of all types."""
    blocks = []
    for kind in _TYPES:
        rows = [
            f"| {' , '.join(f'`{name}`' for name in (field.name, *field.aliases))} | {'yes' if field.secret else ''} | "
            f"{_about(field)} |".replace(" , ", ", ")
            for field in kind.fields
        ]
        needs = " ".join(f"Needs {_listed(group, 'or')}." for group in kind.needs)
        table = "\n".join(["| field | secret | what it holds |", "|---|---|---|", *rows]) if rows else ""
        blocks.append("\n\n".join(part for part in (f"## {kind.name}", kind.about, needs, table) if part))
    return "\n\n".join(blocks)


def _about(field: CredentialField) -> str:
    return f"{field.about} One of {_listed(field.choices, 'or')}." if field.choices else field.about
