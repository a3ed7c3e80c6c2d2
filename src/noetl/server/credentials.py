"""Seals credentials before they are stored, and opens them for a worker: AES-256-GCM.

A sealed credential is bound to its name, so one cannot be put in another's place. Several keys may be known: the first
seals, all open, so a key can be replaced. Tested in tests/server/test_credentials.py.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from noetl.model.errors import InvalidInput

_KEY_BYTES = 32
_NONCE_BYTES = 12
_MARK_BYTES = 4  # which key sealed it: the start of the key's hash


class Vault:
    """Seals and opens with the keys of this server."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != _KEY_BYTES for key in keys):
            raise InvalidInput(f"a key for credentials has {_KEY_BYTES} bytes")
        self._keys = {_mark(key): key for key in keys}
        self._first = keys[0]

    def seal(self, name: str, data: Mapping[str, Any]) -> bytes:
        """Encrypt what a credential holds."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._first).encrypt(nonce, msgspec.json.encode(data), name.encode())
        return _mark(self._first) + nonce + sealed

    def open(self, name: str, sealed: bytes) -> dict[str, Any]:
        """Decrypt it. Raises InvalidInput where no key fits or it was changed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        mark, nonce, rest = (
            sealed[:_MARK_BYTES],
            sealed[_MARK_BYTES:][:_NONCE_BYTES],
            sealed[_MARK_BYTES:][_NONCE_BYTES:],
        )
        key = self._keys.get(bytes(mark))
        if key is None:
            raise InvalidInput(f"the credential `{name}` was sealed with a key that this server does not have")
        try:
            data: dict[str, Any] = msgspec.json.decode(AESGCM(key).decrypt(nonce, rest, name.encode()))
        except (InvalidTag, msgspec.DecodeError):
            raise InvalidInput(f"the credential `{name}` cannot be opened: it is not what was stored") from None
        return data


def keys_of(text: str) -> list[bytes]:
    """Read keys from a setting: URL-safe base64 of 32 bytes, several divided by commas, the newest first."""
    keys = []
    for part in text.split(","):
        try:
            key = urlsafe_b64decode(part.strip() + "=" * (-len(part.strip()) % 4))
        except (Error, ValueError):
            key = b""
        if len(key) != _KEY_BYTES:
            raise InvalidInput("a key for credentials is 32 bytes in URL-safe base64; `noetl serve --help` tells how")
        keys.append(key)
    return keys


def _mark(key: bytes) -> bytes:
    return sha256(b"noetl-key:" + key).digest()[:_MARK_BYTES]
