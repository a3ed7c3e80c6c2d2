"""Stored credentials: opened for a test, and described without their values.

The server's routes and `noetl credential` on a local store use the same functions. Tested in
tests/server/auth/test_stored_credential.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec.structs import replace

from noetl.model.errors import CredentialUnavailable, InvalidInput
from noetl.ports import AuditEntry, AuditTrail, Catalog, Credentials
from noetl.ports.keychain import AccessTokens
from noetl.server.auth.mentioned_credentials import is_in_triggers, mentioned_in
from noetl.server.auth.vault import NEW_KEY, Vault, master_of
from noetl.wire.answers import CredentialDetail, CredentialRow, DataKeyRow, DataKeyRows

USE: Final = "credential.use"  # in the audit trail
_PAGE: Final = 500  # playbooks that are read at once
_ENTRIES: Final = 100  # of the audit trail that are searched for the last use


class CredentialTables(Credentials, AccessTokens, AuditTrail, Protocol):
    """Credentials, access tokens, and the audit trail of their use."""


def row_of(row: Mapping[str, Any]) -> CredentialRow:
    """Return the row of a list."""
    return CredentialRow(**{name: row[name] for name in CredentialRow.__struct_fields__ if name in row})


async def put_row(team: Credentials, row: CredentialRow) -> CredentialRow:
    """Return the row of a credential that was put now, with its creation."""
    stored = await team.sealed_credential(row.name)
    created_at = row.updated_at if stored is None else int(stored["created_at"])
    return replace(row, created_at=created_at)


async def data_key_rows(team: Credentials, vault: Vault) -> DataKeyRows:
    """Return the data keys of a store, without any key."""
    vault.refresh()  # another process may have rotated them
    found = [(row, master_of(row)) for row in await team.data_keys()]
    rows = [
        DataKeyRow(key_id=row.key_id, master=master, created_at=row.created_at, is_current=master == vault.master)
        for row, master in found
    ]
    return DataKeyRows(master=vault.master, keys=rows)


async def open_credential(team: Credentials, vault: Vault | None, name: str) -> tuple[str, dict[str, Any]]:
    """Return kind and data of a credential. Raises KeyError and CredentialUnavailable."""
    row = await team.sealed_credential(name)
    if row is None:
        raise KeyError(name)
    if vault is None:
        raise CredentialUnavailable(f"The credential `{name}` is encrypted, and this server has no key. {NEW_KEY}")
    return str(row["kind"]), await vault.open(team, name, bytes(row["sealed"]))


async def describe_credential(
    team: CredentialTables, catalog: Catalog, vault: Vault | None, name: str
) -> CredentialDetail:
    """Return a credential with its fields' names and its use. Raises KeyError."""
    row = await team.sealed_credential(name)
    if row is None:
        raise KeyError(name)
    fields: list[str] | None = None
    try:
        fields = sorted((await open_credential(team, vault, name))[1])
    except (InvalidInput, CredentialUnavailable):
        fields = None
    used = await _last_use(team, name)
    known = {field: row[field] for field in CredentialRow.__struct_fields__ if field in row}
    return CredentialDetail(
        **known,
        fields=fields,
        playbooks=await playbooks_with(catalog, name),
        used_at=None if used is None else used.at,
        used_by=None if used is None else str(used.detail.get("work", "")).partition(":")[0] or None,
    )


async def playbooks_with(catalog: Catalog, name: str) -> list[str]:
    """List the paths whose latest version names a credential."""
    found: list[str] = []
    after: str | None = None
    while True:
        entries = await catalog.entries(None, after, _PAGE)
        for entry in entries:
            tree = await catalog.canonical(str(entry["playbook"]))
            if tree is not None and (name in mentioned_in(tree) or is_in_triggers(tree, name)):
                found.append(str(entry["path"]))
        if len(entries) < _PAGE:
            return found
        after = str(entries[-1]["path"])


async def _last_use(team: AuditTrail, name: str) -> AuditEntry | None:
    entries = await team.audited(entity=name, limit=_ENTRIES)
    return next((entry for entry in entries if entry.action == USE), None)
