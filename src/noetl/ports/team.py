"""What a server keeps for a team: workers, tokens, credentials, keys of requests, and who did what.

Every port has one conformance suite that all of its adapters pass (tests/conformance).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from noetl.model.commit import AuditEntry

Act = AuditEntry | None  # of whoever changes something: written down in the transaction that does, and only if it does


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

    async def enlist(self, worker: WorkerInfo, act: Act = None) -> None:
        """Write a worker down, or write it again."""

    async def seen(self, worker_id: str, now: int, active: int) -> str | None:
        """Note a sign of life; gives the worker's status, None where it is not known."""

    async def set_status(self, worker_id: str, status: str, act: Act = None) -> bool:
        """Say what a worker is to be; False where it is not known."""

    async def leave(self, worker_id: str, registered_at: int) -> bool:
        """Say that a worker is gone, unless it has registered again since; tells whether that is so."""

    async def strike_off(self, before: int) -> int:
        """Remove the workers that were last seen before a time; gives how many there were."""

    async def discharge(self, worker_id: str, act: Act = None) -> None:
        """Strike a worker off; nothing where it is not known."""

    async def workers(self) -> list[WorkerInfo]:
        """Give all workers, by id."""

    async def depths(self) -> list[Mapping[str, Any]]:
        """Give the queue by pool and required tags: pool, requires, queued, leased, dead, oldest.

        `oldest` is when the queued work that waits longest was scheduled; None where none is queued.
        """


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

    async def add_token(self, token: Token, act: Act = None) -> None:
        """Keep a token. Raises Conflict where its id or its digest is there already."""

    async def token(self, digest: str) -> Token | None:
        """Find a token, also one that was revoked or has expired: whoever asks decides what that means."""

    async def tokens(self) -> list[Token]:
        """Give all tokens, oldest first."""

    async def revoke(self, token_id: str, now: int, act: Act = None) -> bool:
        """Revoke a token; False where it is not known or was revoked before."""

    async def used(self, token_id: str, now: int) -> None:
        """Note a use. Whoever asks need not do so at every request."""


class Credentials(Protocol):
    """Credentials, sealed before they come here and opened after they leave."""

    async def put_credential(
        self, name: str, kind: str, sealed: bytes, about: Mapping[str, Any], now: int, act: Act = None
    ) -> int:
        """Keep a credential under its name; gives its version."""

    async def sealed_credential(self, name: str) -> Mapping[str, Any] | None:
        """Give name, kind, sealed, about, version, created_at, updated_at."""

    async def credentials(self) -> list[Mapping[str, Any]]:
        """List credentials by name, without what they hold."""

    async def delete_credential(self, name: str, act: Act = None) -> bool: ...


class Keys(Protocol):
    """Keys of requests that may be sent twice, and the execution that each stands for."""

    async def keep_key(self, key: str, execution_id: str, now: int, since: int) -> str:
        """Give the execution that a key was first kept with; this one, where nobody kept it since that time.

        However many ask at once, and of whichever server, they are given one.
        """

    async def keep_keys(self, kept: Mapping[str, str], now: int, since: int) -> list[str]:
        """Keep many keys with their executions likewise, all or none of them; gives those of each, in order."""


class AuditTrail(Protocol):
    """Who did what: append-only."""

    async def audit(self, entries: Sequence[AuditEntry]) -> None: ...

    async def audited(
        self, *, actor: str | None = None, entity: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        """Give entries, newest first; `before` is the number where the last page ended."""
