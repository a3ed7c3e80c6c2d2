"""Ports of a server. Every adapter passes tests/conformance/test_team.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from noetl.audit.chain import Chained, Head
from noetl.model.commit import AuditEntry

Audit = AuditEntry | None  # audit entry of a change: written in its transaction, and only if it changes something


class WorkerInfo(msgspec.Struct, frozen=True):
    """Registered worker."""

    worker_id: str
    pool: str
    tags: tuple[str, ...] = ()
    capacity: int = 1
    active: int = 0
    status: str = "ready"  # ready, draining, gone
    host: str = ""
    version: str = ""
    registered_at: int = 0
    seen_at: int = 0
    credentials: tuple[str, ...] | None = None  # in its environment, as ends of variables; None: not reported


class Runtime(Protocol):
    """Registry of workers."""

    async def enlist(self, worker: WorkerInfo, act: Audit = None) -> None:
        """Register a worker, or replace its registration."""

    async def seen(self, worker_id: str, now: int, active: int) -> str | None:
        """Record a heartbeat; return the worker's status, None if it is unknown."""

    async def set_status(self, worker_id: str, status: str, act: Audit = None) -> bool:
        """Set the status of a worker; False if it is unknown."""

    async def leave(self, worker_id: str, registered_at: int) -> bool:
        """Mark a worker as gone unless it registered again; return whether it was."""

    async def strike_off(self, before: int) -> int:
        """Delete workers that were last seen before a time; return how many."""

    async def discharge(self, worker_id: str, act: Audit = None) -> None:
        """Delete a worker, if it exists."""

    async def workers(self) -> list[WorkerInfo]:
        """List all workers by id."""

    async def held(self, worker_id: str) -> list[Mapping[str, Any]]:
        """List work that a worker has leased: work_id, attempt, until; oldest first.

        At most 200 rows.
        """

    async def depths(self) -> list[Mapping[str, Any]]:
        """Count work by pool and required tags.

        The fields of a row: pool, requires, queued, leased, dead, oldest. `oldest` is the creation time of the oldest
        queued work; None if none is queued.
        """

    async def flows(self) -> list[Mapping[str, Any]]:
        """Count queued work: pool, priority, flow, queued, oldest."""

    async def parked(self) -> Mapping[str, int]:
        """Count the parked steps of executions that have not ended, by path."""

    async def limits(self) -> list[Mapping[str, Any]]:
        """Count executions by the group of their limit: group, running, waiting, oldest.

        `oldest` is the start time of the oldest one that waits; None if none does.
        """

    async def work_limits(self) -> list[Mapping[str, Any]]:
        """Count work that counts for a limit of the server: limit, queued, leased."""


class Token(msgspec.Struct, frozen=True):
    """Stored API token, without its secret."""

    token_id: str
    digest: str  # SHA-256 of the secret
    role: str  # viewer, operator, editor, admin, worker
    name: str = ""
    created_at: int = 0
    created_by: str = ""
    expires_at: int | None = None
    revoked_at: int | None = None
    used_at: int | None = None
    pool: str | None = None  # of a worker's token: the only pool that it may use
    namespaces: tuple[str, ...] = ()  # in which it has its role; none: everywhere


class Tokens(Protocol):
    """API tokens by the digest of their secret."""

    async def add_token(self, token: Token, act: Audit = None) -> None:
        """Add a token. Raises Conflict if its id or digest exists."""

    async def token(self, digest: str) -> Token | None:
        """Find a token, also a revoked or expired one: the caller checks that."""

    async def tokens(self) -> list[Token]:
        """List all tokens, oldest first."""

    async def valid_tokens(self, token_ids: Collection[str], now: int) -> set[str]:
        """Return those of these tokens that are neither revoked nor expired."""

    async def revoke(self, token_id: str, now: int, act: Audit = None) -> bool:
        """Revoke a token; False if it is unknown or was revoked before."""

    async def used(self, token_id: str, now: int) -> None:
        """Record a use; callers may skip some uses."""


class DataKey(msgspec.Struct, frozen=True):
    """A key that seals credentials, wrapped by a master key of the servers."""

    key_id: str
    wrapped: bytes
    created_at: int


class Credentials(Protocol):
    """Encrypted credentials. The store never sees their plain text."""

    async def put_credential(
        self, name: str, kind: str, sealed: bytes, about: Mapping[str, Any], now: int, act: Audit = None
    ) -> int:
        """Store a credential under its name; return its version."""

    async def sealed_credential(self, name: str) -> Mapping[str, Any] | None:
        """Return name, kind, sealed, about, version, created_at, updated_at."""

    async def credentials(self) -> list[Mapping[str, Any]]:
        """List credentials by name, without their encrypted values."""

    async def known_credentials(self, names: Collection[str]) -> set[str]:
        """Return those of these names under which a credential is stored."""

    async def delete_credential(self, name: str, act: Audit = None) -> bool: ...

    async def data_keys(self) -> list[DataKey]:
        """List the keys that seal credentials, the newest first."""

    async def add_data_key(self, key: DataKey) -> None:
        """Store a new key."""

    async def rewrap_data_keys(self, wrapped: Mapping[str, tuple[bytes, bytes]], act: Audit = None) -> int:
        """Replace the wrapping of keys by id, old → new; return how many had the old."""


class IdempotencyKeys(Protocol):
    """Idempotency keys of requests, each with its execution."""

    async def keep_key(self, key: str, execution_id: str, now: int, since: int) -> str:
        """Return the execution of a key; if the key is new, store it with this one.

        Only keys that were stored at `since` or later count. Concurrent callers, also on different servers, get the
        same execution.
        """

    async def keep_keys(self, kept: Mapping[str, str], now: int, since: int) -> list[str]:
        """Store many keys likewise, all or none; return the execution of each, in order."""


class AuditTrail(Protocol):
    """Append-only audit trail, whose entries are a hash chain.

    Every entry has the digest of its content. Its link to the one before it is added in the same transaction, or soon
    after the commit by `link`: entries of transactions that run at the same time must not wait for each other.
    """

    async def audit(self, entries: Sequence[AuditEntry]) -> None: ...

    async def audited(
        self, *, actor: str | None = None, entity: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        """List entries, newest first; `before` is the last number of the previous page."""

    async def link(self, most: int) -> int:
        """Link committed entries that have no link; return how many it looked at.

        Several servers may call it: one of them links at a time. Rows that NoETL did not write get no place.
        """

    async def chain(self, after: int, limit: int) -> list[Chained]:
        """List entries in the order of the chain, after a place."""

    async def unlinked(self, after: int, limit: int) -> list[Chained]:
        """List entries without a place in the chain, after a number."""

    async def audit_head(self) -> Head:
        """Return the end of the chain, which is kept apart from the entries."""
