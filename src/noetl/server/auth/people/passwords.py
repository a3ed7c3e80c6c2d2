"""Hash passwords with scrypt. Tested in tests/server/api/test_users.py."""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import scrypt
from typing import Final, TypeVar

from noetl.model.errors import InvalidInput
from noetl.server.problems import Refusal

Result = TypeVar("Result")
_COST: Final = 2**14  # 16 MiB and about 50 ms
_BLOCK: Final = 8
_LEAST: Final = 10
_MOST: Final = 1_000
_PREFIX: Final = "scrypt"
_NONE: Final = f"{_PREFIX}${_COST}${_BLOCK}${b64encode(b'0' * 16).decode()}${b64encode(b'0' * 32).decode()}"


class Passwords:
    """Hash and verify passwords in threads, a few at once."""

    def __init__(self, at_once: int = 2, waiting: int = 64) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._places = waiting  # of requests that wait for a thread, or have one

    async def hash(self, password: str) -> str:
        """Return the hash of a new password. Raises InvalidInput if it is too short."""
        checked_password(password)
        return await self._run(hash_password, password)

    async def verify(self, password: str, stored: str) -> bool:
        """Return whether a password is the stored one; takes as long if none is stored."""
        return await self._run(_matches, password[:_MOST], stored or _NONE) and bool(stored)

    async def _run(self, function: Callable[..., Result], *values: str) -> Result:
        """Run a function in a thread. Raises Refusal if too many wait for one."""
        if not self._places:
            detail = "Too many sign-ins wait."
            raise Refusal(503, "busy", detail, fix="Try again soon.", retry_after_s=1.0)
        self._places -= 1
        try:
            async with self._room:
                return await asyncio.to_thread(function, *values)
        finally:
            self._places += 1


def checked_password(password: str) -> str:
    """Return a password that can be stored. Raises InvalidInput."""
    if not _LEAST <= len(password) <= _MOST:
        raise InvalidInput(f"A password has {_LEAST} to {_MOST} characters. Choose a longer one.")
    return password


def hash_password(password: str) -> str:
    """Return the hash of a password with its salt and cost."""
    salt = secrets.token_bytes(16)
    parts = (
        str(_COST),
        str(_BLOCK),
        b64encode(salt).decode(),
        b64encode(_derive(password, salt, _COST, _BLOCK)).decode(),
    )
    return "$".join((_PREFIX, *parts))


def _matches(password: str, stored: str) -> bool:
    prefix, cost, block, salt, kept = stored.split("$")
    found = _derive(password, b64decode(salt), int(cost), int(block))
    return prefix == _PREFIX and secrets.compare_digest(found, b64decode(kept))


def _derive(password: str, salt: bytes, cost: int, block: int) -> bytes:
    data = password.encode("utf-8", "surrogatepass")
    return scrypt(data, salt=salt, n=cost, r=block, p=1, dklen=32, maxmem=256 * cost * block)
