"""Ports of access tokens that workers share: the store's, and a worker's view.

A token is fetched once for all: a worker that finds none asks for the right to fetch it, the others wait for what it
stores. Tested in tests/conformance/test_access_tokens.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

DAY_MS: Final = 86_400_000  # after its end, a token is removed


class SealedToken(Struct, frozen=True):
    """A stored token; `sealed` is empty while the first one is fetched."""

    sealed: bytes
    expires_at: int
    version: int


class AccessTokens(Protocol):
    """Encrypted access tokens by the request for them."""

    async def access_token(self, key: str) -> SealedToken | None: ...

    async def claim_access_token(self, key: str, holder: str, version: int, now: int, until: int) -> bool:
        """Claim the right to fetch the token after `version`, until a time.

        False if another holder has it, or if there is another version already.
        """

    async def keep_access_token(self, key: str, holder: str, sealed: bytes | None, expires_at: int, now: int) -> bool:
        """Store what the holder fetched, or only give the right back (None).

        False if the holder lost the right. Tokens that expired a day ago are removed.
        """


class OfferedToken(Struct, frozen=True):
    """Answer to a worker: a token, the right to fetch one, or neither: ask again soon."""

    token: Mapping[str, Any] | None = None
    expires_at: int = 0  # when it must be renewed
    version: int = 0
    may_fetch: bool = False
    refresh_token: str = ""  # the newest that a token server gave, with the right to fetch


class TokenExchange(Protocol):
    """Where workers share access tokens. Raises NoetlError while it cannot be reached."""

    async def ask(self, key: str, seen: int) -> OfferedToken:
        """Return a token of a version after `seen`, or the right to fetch it."""

    async def keep(self, key: str, token: Mapping[str, Any] | None, expires_at: int) -> int:
        """Share a fetched token, or give the right back (None); return its version."""
