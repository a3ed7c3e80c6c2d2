"""Access tokens of keychains, sealed in the store, fetched by one worker for all.

The right to fetch lasts a minute, so that a worker that was killed holds up the others no longer. The newest refresh token
has a row of its own: it is needed when the access token has long been removed. Tested in
tests/server/auth/test_access_tokens.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from noetl.model.errors import InvalidInput
from noetl.ports import Clock, Credentials
from noetl.ports.keychain import DAY_MS, AccessTokens, OfferedToken
from noetl.server.auth.vault import Vault

_RIGHT_MS: Final = 60_000  # longer than the tries of one request to a token server
_NAME: Final = "access token "
_REFRESH: Final = "refresh "  # before the key of an access token
_REFRESH_MS: Final = 400 * DAY_MS  # longer than the longest access token


class TokenTables(AccessTokens, Credentials, Protocol):
    """Access tokens, and the data keys that seal them."""


class SharedTokens:
    """The access tokens of a store, for one holder."""

    def __init__(
        self, tokens: Callable[[], TokenTables], vault: Callable[[], Vault | None], clock: Clock, holder: str
    ) -> None:
        self._tokens = tokens
        self._vault = vault
        self._clock = clock
        self._holder = holder

    async def ask(self, key: str, seen: int) -> OfferedToken:
        """Return a token of a version after `seen`, or the right to fetch it."""
        vault = self._vault()
        if vault is None:  # nothing can be sealed, so nothing is shared
            return OfferedToken(may_fetch=True)
        tokens, now = self._tokens(), self._clock.now()
        found = await tokens.access_token(key)
        if found is not None and found.sealed and found.version > seen and now < found.expires_at:
            try:
                return OfferedToken(
                    await vault.open(tokens, _NAME + key, found.sealed), found.expires_at, found.version
                )
            except InvalidInput:
                pass  # sealed with a key that is gone: it is fetched again
        version = found.version if found is not None else 0
        is_granted = await tokens.claim_access_token(key, self._holder, version, now, now + _RIGHT_MS)
        newest = await self._newest(vault, key) if is_granted else ""
        return OfferedToken(may_fetch=is_granted, refresh_token=newest)

    async def keep(self, key: str, token: Mapping[str, Any] | None, expires_at: int) -> int:
        """Share a fetched token, or give the right back (None); return its version."""
        vault = self._vault()
        if vault is None:
            return 0
        tokens, now = self._tokens(), self._clock.now()
        if token is not None and token.get("refresh_token"):
            await self._keep_newest(vault, key, str(token["refresh_token"]))
        sealed = None if token is None else await vault.seal(tokens, _NAME + key, token, now)
        await tokens.keep_access_token(key, self._holder, sealed, expires_at, now)
        found = await tokens.access_token(key)
        return found.version if found is not None else 0

    async def _newest(self, vault: Vault, key: str) -> str:
        """Return the newest refresh token that was shared; empty without one."""
        found = await self._tokens().access_token(_REFRESH + key)
        if found is None or not found.sealed:
            return ""
        try:
            held = await vault.open(self._tokens(), _NAME + _REFRESH + key, found.sealed)
        except InvalidInput:  # sealed with a key that is gone
            return ""
        return str(held["refresh_token"])

    async def _keep_newest(self, vault: Vault, key: str, newest: str) -> None:
        """Keep a refresh token; only the holder of the right to fetch does."""
        tokens, now, row = self._tokens(), self._clock.now(), _REFRESH + key
        if newest == await self._newest(vault, key):
            return
        found = await tokens.access_token(row)
        version = 0 if found is None else found.version
        if await tokens.claim_access_token(row, self._holder, version, now, now + _RIGHT_MS):
            sealed = await vault.seal(tokens, _NAME + row, {"refresh_token": newest}, now)
            await tokens.keep_access_token(row, self._holder, sealed, now + _REFRESH_MS, now)
