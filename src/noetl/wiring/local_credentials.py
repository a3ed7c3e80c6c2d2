"""Credentials of a local store, for commands that use no server.

It has the methods of `Client` for credentials, so that a command does not know which of both it uses. Tested in
tests/acceptance/admin/test_credential_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from noetl.model.errors import InvalidInput
from noetl.ports import AuditEntry
from noetl.server.auth.credential_types import name_problem, problems
from noetl.server.auth.stored_credential import data_key_rows, describe_credential, open_credential, put_row, row_of
from noetl.server.auth.vault import NEW_KEY, Vault
from noetl.settings import Settings
from noetl.wire.answers import CredentialDetail, CredentialRow, CredentialTested, DataKeyRows, KeysRotated, Removed
from noetl.wiring.credential_test import CredentialTests
from noetl.wiring.credentials import credential_vault
from noetl.wiring.embedded import Store, confined, egress_rules, open_store, open_team


class LocalCredentials:
    """Credentials of a store that this process has opened."""

    def __init__(self, store: Store, settings: Settings, actor: str) -> None:
        self._store = store
        self._team = open_team(store)
        self._settings = settings
        self._actor = actor
        self.kept_for: list[str] = []  # stores for which a rotation kept an older key

    async def credentials(self) -> list[CredentialRow]:
        """List credentials without their data."""
        return [row_of(row) for row in await self._team.credentials()]

    async def put_credential(self, name: str, data: Mapping[str, Any], kind: str = "generic") -> CredentialRow:
        """Store a credential. Raises InvalidInput if its name or its fields are wrong."""
        unnamed = name_problem(name)
        wrong = [*([] if unnamed is None else [unnamed]), *problems(kind, data)]
        if wrong:
            raise InvalidInput("\n".join(f"{one.where}: {one.message} {one.fix}" for one in wrong))
        vault, now = self._some_vault(), self._store.clock.now()
        act = self._act("credential.put", name, kind=kind)
        sealed = await vault.seal(self._team, name, data, now)
        version = await self._team.put_credential(name, kind, sealed, {}, now, act)
        return await put_row(self._team, CredentialRow(name=name, kind=kind, version=version, updated_at=now))

    async def credential(self, name: str) -> CredentialDetail:
        """Describe a credential without its values. Raises InvalidInput."""
        try:
            return await describe_credential(self._team, self._store, self._vault(), name)
        except KeyError:
            raise _missing(name) from None

    async def test_credential(self, name: str, url: str | None = None) -> CredentialTested:
        """Connect with a credential from this process. Raises InvalidInput."""
        try:
            kind, data = await open_credential(self._team, self._vault(), name)
        except KeyError:
            raise _missing(name) from None
        rules = egress_rules(confined(self._settings, several_users=False))
        return await CredentialTests(rules, self._store.clock)(name, kind, data, url)

    async def delete_credential(self, name: str) -> Removed:
        """Delete a credential. Raises InvalidInput if there is none."""
        if not await self._team.delete_credential(name, self._act("credential.delete", name)):
            raise _missing(name)
        return Removed(removed=1)

    async def data_keys(self) -> DataKeyRows:
        """List the keys that seal credentials. Raises InvalidInput without a master key."""
        return await data_key_rows(self._team, self._some_vault())

    async def rotate_keys(self) -> KeysRotated:
        """Wrap every data key with the first master key, or a new one of a key file.

        Servers that run keep the data keys that they have, and read the file again for others.
        """
        vault = self._some_vault()
        count = await vault.rotate(self._team, lambda master: self._act("key.rotate", master))
        self.kept_for = vault.kept_for
        return KeysRotated(rotated=count, master=vault.master)

    def _some_vault(self) -> Vault:
        vault = self._vault()
        if vault is None:
            raise InvalidInput(f"There is no key to encrypt credentials. {NEW_KEY}")
        return vault

    def _vault(self) -> Vault | None:
        return credential_vault(self._settings)

    def _act(self, action: str, name: str, **detail: Any) -> AuditEntry:
        return AuditEntry(self._store.clock.now(), self._actor, action, name, detail)


@asynccontextmanager
async def local_credentials(settings: Settings, actor: str) -> AsyncIterator[LocalCredentials]:
    """Open the credentials of a local store."""
    store = open_store(settings)
    try:
        if settings.database:
            await store.version()  # reads its clock
        yield LocalCredentials(store, settings, actor)
    finally:
        await store.close()


def _missing(name: str) -> InvalidInput:
    return InvalidInput(f"No credential `{name}` in this store. List credentials with `noetl credential list`.")
