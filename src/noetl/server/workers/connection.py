"""Leases and claims by worker. Tested in tests/server/workers/test_registry.py."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from noetl.model.work import Lease
from noetl.wire.session import Held, Hello, ToWorker

Push = Callable[[ToWorker], None]


@dataclass(slots=True)
class LeaseGrant:
    """A lease that a worker holds."""

    lease: Lease | None  # None: granted by another server
    until: int
    ack_by: int | None = None


@dataclass(slots=True, eq=False)
class WorkerConnection:
    """A worker as this server knows it."""

    name: str
    hello: Hello
    registered_at: int
    push: Push | None = None  # to its session, while there is one
    given: dict[Held, LeaseGrant] = field(default_factory=dict)
    claims: OrderedDict[str, asyncio.Task[list[Lease]]] = field(default_factory=OrderedDict)
    draining: bool = False
    heard_at: int = 0
    noted_at: int = 0

    def let_claims_go(self) -> None:
        """Cancel the waiting claims."""
        for claim in self.claims.values():
            claim.cancel()

    def is_back(self, registered_at: int) -> bool:
        """Return whether a worker whose session had closed has another one here."""
        return self.push is not None or self.registered_at != registered_at
