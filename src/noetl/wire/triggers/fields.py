"""Fields and the query that bodies of all triggers share.

Tested in tests/server/api/triggers.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from noetl.schedules.spec import NAME
from noetl.wire.requests import Asked, Limit, Name

TriggerName = Annotated[str, Meta(pattern=f"^{NAME}$")]
Short = Annotated[str, Meta(max_length=200)]
Long = Annotated[str, Meta(max_length=2_000)]


class TriggersQuery(Asked, frozen=True):
    """Filter of a list of triggers."""

    path: Name | None = None  # of the playbook; of notifications, the pattern as it is written
    cursor: str | None = None  # `next` of the previous page
    limit: Limit = 100
