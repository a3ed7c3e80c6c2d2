"""Encryption of stored credentials: AES-256-GCM.

A sealed credential is bound to its name, so it cannot be swapped for another. The first of several keys encrypts, all of
them decrypt, so keys can be rotated. Tested in tests/server/auth/test_vault.py.
"""

from __future__ import annotations

import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from noetl.model.errors import InvalidInput
from noetl.private_files import open_private

_KEY_BYTES = 32
_NONCE_BYTES = 12
NEW_KEY = (
    "Start every server of this store with the same key. Create it once: "
    '`export NOETL_ENCRYPTION_KEY="$(noetl credential key)"`'
)
_MARK_BYTES = 4  # names the key: the start of its hash


class Vault:
    """Encrypt and decrypt credentials with the keys of this server."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != _KEY_BYTES for key in keys):
            raise InvalidInput(f"A key for credentials must have {_KEY_BYTES} bytes.")
        self._keys = {_mark(key): key for key in keys}
        self._first = keys[0]

    def seal(self, name: str, data: Mapping[str, Any]) -> bytes:
        """Encrypt the data of a credential."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._first).encrypt(nonce, msgspec.json.encode(data), name.encode())
        return _mark(self._first) + nonce + sealed

    def open(self, name: str, sealed: bytes) -> dict[str, Any]:
        """Decrypt a credential. Raises InvalidInput if it was changed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        mark, nonce, rest = (
            sealed[:_MARK_BYTES],
            sealed[_MARK_BYTES:][:_NONCE_BYTES],
            sealed[_MARK_BYTES:][_NONCE_BYTES:],
        )
        key = self._keys.get(bytes(mark))
        if key is None:
            raise InvalidInput(
                f"The credential `{name}` was sealed with a key that this server does not have. "
                "Add that key to NOETL_ENCRYPTION_KEY, or store the credential again."
            )
        try:
            data: dict[str, Any] = msgspec.json.decode(AESGCM(key).decrypt(nonce, rest, name.encode()))
        except (InvalidTag, msgspec.DecodeError):
            raise InvalidInput(f"The credential `{name}` was changed in the store. Store it again.") from None
        return data


def keys_of(text: str) -> list[bytes]:
    """Parse keys: URL-safe base64, separated by commas, the newest first."""
    keys = []
    for part in text.split(","):
        try:
            key = urlsafe_b64decode(part.strip() + "=" * (-len(part.strip()) % 4))
        except (Error, ValueError):
            key = b""
        if len(key) != _KEY_BYTES:
            raise InvalidInput(
                "A key in NOETL_ENCRYPTION_KEY is not 32 bytes in URL-safe base64. Print a new one with `noetl credential key`."
            )
        keys.append(key)
    return keys


def new_key() -> str:
    """Create a key as NOETL_ENCRYPTION_KEY takes it."""
    return urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def vault_beside(path: Path) -> Vault:
    """Return a vault whose key is in a private file; create a missing file."""
    with suppress(FileExistsError), open(open_private(path, os.O_WRONLY | os.O_EXCL), "w") as file:
        file.write(new_key())
    return Vault(keys_of(path.read_text(encoding="ascii")))


def _mark(key: bytes) -> bytes:
    return sha256(b"noetl-key:" + key).digest()[:_MARK_BYTES]
