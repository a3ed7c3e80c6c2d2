"""What a server keeps for a team: workers, tokens, credentials, and who did what.

Every port has one conformance suite that all of its adapters pass (tests/conformance).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec


class WorkerInfo(msgspec.Struct, frozen=True):
    """A worker as it is written down."""

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


class Runtime(Protocol):
    """The workers that are there, and what they can do."""

    async def enlist(self, worker: WorkerInfo) -> None:
        """Write a worker down, or write it again."""

    async def seen(self, worker_id: str, now: int, active: int) -> str | None:
        """Note a sign of life; gives the worker's status, None where it is not known."""

    async def set_status(self, worker_id: str, status: str) -> bool: ...

    async def discharge(self, worker_id: str) -> None: ...

    async def workers(self) -> list[WorkerInfo]: ...

    async def depths(self) -> list[Mapping[str, Any]]:
        """Give the queue by pool: pool, requires, queued, leased, dead, oldest."""


class Token(msgspec.Struct, frozen=True):
    """An API token as it is kept: never the secret itself."""

    token_id: str
    digest: str  # SHA-256 of the secret
    role: str  # viewer, operator, editor, admin, worker
    name: str = ""
    created_at: int = 0
    created_by: str = ""
    expires_at: int | None = None
    revoked_at: int | None = None
    used_at: int | None = None
    pool: str | None = None  # a worker's token may be bound to one pool


class Tokens(Protocol):
    """API tokens, looked up by the digest of their secret."""

    async def add_token(self, token: Token) -> None: ...

    async def token(self, digest: str) -> Token | None: ...

    async def tokens(self) -> list[Token]: ...

    async def revoke(self, token_id: str, now: int) -> bool: ...


class Credentials(Protocol):
    """Credentials, sealed before they come here and opened after they leave."""

    async def put_credential(self, name: str, kind: str, sealed: bytes, about: Mapping[str, Any], now: int) -> int:
        """Keep a credential under its name; gives its version."""

    async def sealed_credential(self, name: str) -> Mapping[str, Any] | None:
        """Give name, kind, sealed, about, version, created_at, updated_at."""

    async def credentials(self) -> list[Mapping[str, Any]]:
        """List credentials without what they hold."""

    async def delete_credential(self, name: str) -> bool: ...


class AuditEntry(msgspec.Struct, frozen=True):
    """One act."""

    at: int
    actor: str
    action: str  # such as `execution.cancel`
    entity: str = ""
    detail: Mapping[str, Any] = {}
    number: int = 0  # given by the store


class AuditTrail(Protocol):
    """Who did what: append-only."""

    async def audit(self, entries: Sequence[AuditEntry]) -> None: ...

    async def audited(
        self, *, actor: str | None = None, entity: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        """Give entries, newest first."""
