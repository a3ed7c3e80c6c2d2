"""Credentials of workers in this process: the environment, then the store.

The first use of a stored credential by an execution is written to the audit trail. Tested in
tests/server/auth/test_stored_credential.py and tests/acceptance/admin/test_credential_cli.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from noetl.environ import variables
from noetl.model.errors import CredentialUnavailable, InvalidInput
from noetl.ports import AuditEntry, Clock
from noetl.settings import Settings, credential

if TYPE_CHECKING:
    from pathlib import Path

    from noetl.ports.keychain import TokenExchange
    from noetl.server.auth.stored_credential import CredentialTables
    from noetl.server.auth.vault import Vault

_MOST_USES: Final = 4_096  # uses that are remembered, so that each is written once


class StoredCredentials:
    """Resolves names to credentials. Raises KeyError and CredentialUnavailable."""

    def __init__(
        self, settings: Settings, team: Callable[[], CredentialTables], clock: Clock, vault: Vault | None = None
    ) -> None:
        self._settings = settings
        self._team = team
        self._clock = clock
        self._vault = vault
        self._used: dict[tuple[str, str], None] = {}

    async def __call__(self, name: str) -> Mapping[str, Any]:
        with suppress(KeyError):
            return credential(variables(), name)
        from noetl.server.auth.stored_credential import open_credential

        team = self._team()
        if await team.sealed_credential(name) is None:
            raise KeyError(name)
        try:
            _, data = await open_credential(team, self._opened(), name)
        except InvalidInput as error:  # no key opens it: a problem of the credential, not of what asks for it
            raise CredentialUnavailable(str(error)) from None
        await self._note(team, name)
        return data

    def exchange(self, worker: str) -> TokenExchange:
        """Return where a worker of this process shares access tokens with others."""
        from noetl.server.auth.access_tokens import SharedTokens

        return SharedTokens(self._team, self._opened, self._clock, worker)

    def _opened(self) -> Vault | None:
        if self._vault is None:
            self._vault = credential_vault(self._settings)
        return self._vault

    async def _note(self, team: CredentialTables, name: str) -> None:
        from noetl.server.auth.stored_credential import USE
        from noetl.worker.loop import current_lease

        work = current_lease()[0]
        use = name, work.partition(":")[0]
        if not work or use in self._used:
            return
        await team.audit([AuditEntry(self._clock.now(), "worker", USE, name, {"work": work})])
        while len(self._used) >= _MOST_USES:
            del self._used[next(iter(self._used))]
        self._used[use] = None


def credential_vault(settings: Settings, key: str = "") -> Vault | None:
    """Return the vault, with the configured key or SQLite's key file.

    Processes that share a database must share a key, so there it must be configured.
    """
    from noetl.server.auth.vault import Vault, keys_of, vault_beside

    if key or settings.key:
        return Vault(keys_of(key or settings.key))
    return None if settings.database else vault_beside(settings.store)


def key_file(settings: Settings) -> Path:
    """Return the file with the keys of the SQLite stores of a folder."""
    from noetl.server.auth.key_file import KeyFile

    return KeyFile(settings.store).path
