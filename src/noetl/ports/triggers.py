"""Port of triggers other than schedules.

A trigger is stored as data; `noetl.triggers` knows what each kind holds. Every adapter passes
tests/conformance/test_triggers.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from noetl.ports.team import Audit


class StoredTrigger(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stored trigger of a playbook."""

    kind: str  # webhook, ended
    trigger_id: str  # unique among those of its kind
    path: str
    spec: Mapping[str, Any] = {}
    version: int | None = None  # of the playbook; None: the latest at each start
    owner: str = ""  # path of the playbook whose `triggers` define it; empty: made by API
    paused: bool = False
    created_at: int = 0
    created_by: str = ""
    changed_at: int = 0
    revision: int = 0  # counts the changes; assigned by the store


class Triggers(Protocol):
    """Triggers by kind and id."""

    async def add(self, trigger: StoredTrigger, act: Audit = None) -> bool:
        """Add a trigger; False if its kind has one with this id."""

    async def save(self, trigger: StoredTrigger, act: Audit = None) -> bool:
        """Replace a trigger; False if the stored revision is not that of the given one."""

    async def remove(self, kind: str, trigger_id: str, act: Audit = None) -> bool:
        """Remove a trigger; False if it is unknown."""

    async def trigger(self, kind: str, trigger_id: str) -> StoredTrigger | None: ...

    async def triggers(
        self,
        kind: str,
        *,
        path: str | None = None,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[StoredTrigger]:
        """List triggers of a kind by id; `after` is the last id of the previous page."""

    async def position(self, name: str) -> tuple[dict[str, int], int]:
        """Return how far a reader of the log's feed got, and the revision of that."""

    async def advance(self, name: str, position: Mapping[str, int], revision: int) -> bool:
        """Replace the position of a reader; False if its revision is another one."""
