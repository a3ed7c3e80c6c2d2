"""Encryption of stored credentials: AES-256-GCM with wrapped data keys.

A sealed credential is bound to its name, so it cannot be swapped for another. Data keys are in the store, wrapped; the
master keys are not. The first of several master keys wraps, all of them unwrap: to rotate them, only the data keys are
wrapped again, however many credentials there are. A process keeps the data keys that it has unwrapped. Tested in
tests/server/auth/test_vault.py and test_rotation.py.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from noetl.model.errors import InvalidInput
from noetl.ports import Audit, Credentials
from noetl.ports.team import DataKey
from noetl.server.auth.key_file import KeyFile

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_ID_BYTES: Final = 8
NEW_KEY: Final = (
    "Start every server of this store with the same key. Create it once: "
    '`export NOETL_ENCRYPTION_KEY="$(noetl credential key)"`'
)
_MARK_BYTES: Final = 4  # names a master key: the start of its hash
_WRAPPED: Final = b"noetl data key "  # what a data key is bound to, with its id


class Vault:
    """Encrypt and decrypt credentials of a store with the master keys of this process.

    Keys of a file are read again when they must be: another process may have rotated them.
    """

    def __init__(self, keys: Sequence[bytes], file: KeyFile | None = None) -> None:
        self._file = file
        self.rotations = 0  # by this process
        self.kept_for: list[str] = []  # stores for which the last one kept an older key
        self._use(keys)
        self._data_keys: dict[bytes, bytes] = {}
        self._newest = b""  # id of the data key that seals

    def _use(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != _KEY_BYTES for key in keys):
            raise InvalidInput(f"A key for credentials must have {_KEY_BYTES} bytes.")
        self._masters = {_mark(key): key for key in keys}
        self._first = keys[0]

    @property
    def master(self) -> str:
        """Name of the master key that wraps: the start of its hash."""
        return _mark(self._first).hex()

    def has_master(self, name: str) -> bool:
        """Return whether a master key of this name is among the keys."""
        return bytes.fromhex(name) in self._masters

    async def seal(self, team: Credentials, name: str, data: Mapping[str, Any], now: int) -> bytes:
        """Encrypt the data of a credential."""
        if not self._newest:
            await self.prepare(team, now)
        return self._newest + _encrypt(self._data_keys[self._newest], msgspec.json.encode(data), name.encode())

    async def open(self, team: Credentials, name: str, sealed: bytes) -> dict[str, Any]:
        """Decrypt a credential. Raises InvalidInput if it was changed."""
        key_id = sealed[:_ID_BYTES]
        if key_id not in self._data_keys:
            await self.load(team)
        key = self._data_keys.get(key_id)
        if key is None:
            raise InvalidInput(
                f"The credential `{name}` was sealed with a key that this server does not have. "
                "Add that key to NOETL_ENCRYPTION_KEY, or store the credential again."
            )
        found = _decrypt(key, sealed[_ID_BYTES:], name.encode())
        try:
            data: dict[str, Any] = msgspec.json.decode(found or b"")
        except msgspec.DecodeError:
            raise InvalidInput(f"The credential `{name}` was changed in the store. Store it again.") from None
        return data

    async def prepare(self, team: Credentials, now: int) -> None:
        """Unwrap the data keys of the store; a store without any gets its first one."""
        await self.load(team)
        if self._newest:
            return
        async with self._locked():  # else a rotation could remove the master key that wraps it
            self.refresh()
            await self.load(team)
            if not self._newest:
                key_id, made = secrets.token_bytes(_ID_BYTES), secrets.token_bytes(_KEY_BYTES)
                await team.add_data_key(DataKey(key_id.hex(), self._wrap(key_id, made), now))
                self._data_keys[key_id], self._newest = made, key_id

    async def load(self, team: Credentials) -> None:
        """Unwrap the data keys of the store that are not known yet."""
        rows = await team.data_keys()
        if any(row.wrapped[:_MARK_BYTES] not in self._masters for row in rows):
            self.refresh()
        for row in rows:
            key_id = bytes.fromhex(row.key_id)
            if key_id not in self._data_keys and (key := self._unwrap(row)) is not None:
                self._data_keys[key_id] = key
        known = [bytes.fromhex(row.key_id) for row in rows if bytes.fromhex(row.key_id) in self._data_keys]
        self._newest = known[0] if known else b""

    def refresh(self) -> None:
        """Read the master keys again if they are in a file: a rotation replaces it."""
        if self._file is not None:
            self._use(keys_of(self._file.read()))

    async def rotate(self, team: Credentials, act: Callable[[str], Audit] = lambda _master: None) -> int:
        """Wrap every data key with the first master key; return how many changed.

        With a key file, that is a new key: the file has both keys until every data key is wrapped again, so that an
        interrupted rotation loses nothing and the next one completes it. Raises InvalidInput if a data key is wrapped by a
        master key that this process does not have. `act` makes the entry of the audit trail.
        """
        async with self._locked():  # else two rotations at once would remove each other's keys
            self.refresh()
            if self._file is not None:
                self._outdated(await team.data_keys())  # refuses before a key is made
                self._file.put_first(new_key())
                self.refresh()
            count = await self._wrap_all(team, act(self.master))
            if self._file is not None:
                drop = self._file.drop_unneeded
                self.kept_for = await asyncio.to_thread(drop, lambda key: _mark(keys_of(key)[0]))
        self.rotations += 1
        return count

    def _locked(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._file is None else self._file.locked()

    async def _wrap_all(self, team: Credentials, act: Audit) -> int:
        """Wrap the data keys again until none is wrapped by another key."""
        count = await team.rewrap_data_keys(self._outdated(await team.data_keys()), act)
        while changed := self._outdated(await team.data_keys()):  # another process was faster
            count += await team.rewrap_data_keys(changed)
        return count

    def _outdated(self, rows: Iterable[DataKey]) -> dict[str, tuple[bytes, bytes]]:
        """Return old and new wrapping of the data keys that another master key wraps."""
        changed = {}
        for row in rows:
            key = self._unwrap(row)
            if key is None:
                raise InvalidInput(
                    f"The data key {row.key_id} is wrapped by the master key {row.wrapped[:_MARK_BYTES].hex()}, which this "
                    "process does not have. Put it behind the new one in NOETL_ENCRYPTION_KEY, then rotate."
                )
            if row.wrapped[:_MARK_BYTES] != _mark(self._first):
                changed[row.key_id] = (row.wrapped, self._wrap(bytes.fromhex(row.key_id), key))
        return changed

    def _wrap(self, key_id: bytes, key: bytes) -> bytes:
        return _mark(self._first) + _encrypt(self._first, key, _WRAPPED + key_id)

    def _unwrap(self, row: DataKey) -> bytes | None:
        master = self._masters.get(row.wrapped[:_MARK_BYTES])
        return (
            None
            if master is None
            else _decrypt(master, row.wrapped[_MARK_BYTES:], _WRAPPED + bytes.fromhex(row.key_id))
        )


def master_of(row: DataKey) -> str:
    """Return the name of the master key that wraps a data key."""
    return row.wrapped[:_MARK_BYTES].hex()


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


def vault_beside(store: Path) -> Vault:
    """Return a vault whose keys are in the file beside a store; create a missing file."""
    file = KeyFile(store)
    file.create(new_key())
    return Vault(keys_of(file.read()), file)


def _encrypt(key: bytes, data: bytes, bound: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, bound)


def _decrypt(key: bytes, sealed: bytes, bound: bytes) -> bytes | None:
    """Return the plain bytes; None if they were changed."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
    except (InvalidTag, ValueError):
        return None


def _mark(key: bytes) -> bytes:
    return sha256(b"noetl-key:" + key).digest()[:_MARK_BYTES]
