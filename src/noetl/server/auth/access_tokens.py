"""Access tokens of keychains, sealed in the store, fetched by one worker for all.

The right to fetch lasts a minute, so that a worker that was killed holds up the others no longer. Tested in
tests/server/auth/test_access_tokens.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from noetl.model.errors import InvalidInput
from noetl.ports import Clock, Credentials
from noetl.ports.keychain import AccessTokens, OfferedToken
from noetl.server.auth.vault import Vault

_RIGHT_MS: Final = 60_000  # longer than the tries of one request to a token server
_NAME: Final = "access token "


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
        return OfferedToken(may_fetch=is_granted)

    async def keep(self, key: str, token: Mapping[str, Any] | None, expires_at: int) -> int:
        """Share a fetched token, or give the right back (None); return its version."""
        vault = self._vault()
        if vault is None:
            return 0
        tokens, now = self._tokens(), self._clock.now()
        sealed = None if token is None else await vault.seal(tokens, _NAME + key, token, now)
        await tokens.keep_access_token(key, self._holder, sealed, expires_at, now)
        found = await tokens.access_token(key)
        return found.version if found is not None else 0
