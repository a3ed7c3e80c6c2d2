"""Credentials: stored and listed here, decrypted only for a leased task.

These routes never return the data of a credential. Tested in tests/server/auth/test_vault.py and
tests/server/auth/test_stored_credential.py.
"""

from __future__ import annotations

from noetl.server.auth.credential_types import name_problem, problems
from noetl.server.auth.stored_credential import describe_credential, open_credential, put_row, row_of
from noetl.server.auth.vault import NEW_KEY, Vault
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.wire.answers import CredentialDetail, CredentialRow, CredentialRows, CredentialTested, Removed
from noetl.wire.requests import CredentialPut, CredentialTest

noun = Noun("credentials", "Secrets that tasks refer to in `auth`.")


def vault_of(call: Call) -> Vault:
    """Return the vault of this server. Raises Refusal without a key."""
    vault = call.services.vault
    if vault is None:
        raise Refusal(
            503,
            "no-key",
            "This server has no key to encrypt credentials.",
            fix=NEW_KEY,
        )
    return vault


@noun.route(
    "PUT",
    "/api/credentials/{name}",
    "editor",
    act="credential.put",
    example={"kind": "postgres", "data": {"dsn": "postgresql://user:secret@db/app"}},
    problems=(422, 503),
)
async def put(call: Call, name: str, body: CredentialPut) -> CredentialRow:
    """Store a credential; one with the same name is replaced.

    The fields of `data` are those of its `kind`, and their values are checked. With `generic`, the default, nothing is.
    """
    misnamed = name_problem(name)
    wrong = (misnamed,) if misnamed else problems(body.kind, body.data)
    if wrong:
        detail = " ".join(one.message for one in wrong)
        raise Refusal(422, "invalid", detail, where=wrong[0].where, fix=wrong[0].fix)
    team, now = call.services.team, call.services.clock.now()
    sealed = await vault_of(call).seal(team, name, body.data, now)
    version = await team.put_credential(name, body.kind, sealed, body.about, now, call.act(name, kind=body.kind))
    row = CredentialRow(name=name, kind=body.kind, version=version, about=body.about, updated_at=now)
    return await put_row(team, row)


@noun.route("GET", "/api/credentials", "editor")
async def listed(call: Call) -> CredentialRows:
    """List credentials without their data."""
    return CredentialRows(credentials=[row_of(row) for row in await call.services.team.credentials()])


@noun.route("DELETE", "/api/credentials/{name}", "editor", act="credential.delete", problems=(404,))
async def remove(call: Call, name: str) -> Removed:
    """Delete a credential."""
    if not await call.services.team.delete_credential(name, call.act(name)):
        raise _missing(name)
    return Removed(removed=1)


@noun.route("GET", "/api/credentials/{name}", "editor", problems=(404,))
async def one(call: Call, name: str) -> CredentialDetail:
    """Return a credential with its fields' names and its use, never a value."""
    services = call.services
    try:
        return await describe_credential(services.team, services.store, services.vault, name)
    except KeyError:
        raise _missing(name) from None


@noun.route(
    "POST",
    "/api/credentials/{name}/test",
    "editor",
    act="credential.test",
    example={"url": "https://api.example.org/me"},
    problems=(404, 422, 503),
)
async def tested(call: Call, name: str, body: CredentialTest) -> CredentialTested:
    """Connect with a credential from this server, within its egress rules."""
    try:
        kind, data = await open_credential(call.services.team, vault_of(call), name)
    except KeyError:
        raise _missing(name) from None
    await call.services.team.audit([call.act(name)])  # before anything is sent
    return await call.services.test_credential(name, kind, data, body.url)


def _missing(name: str) -> Refusal:
    return not_found(f"No credential `{name}`.", "GET /api/credentials lists the credentials.")
