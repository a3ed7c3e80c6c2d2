"""Port of schedules and their firings.

A firing is recorded in the transaction that moves its schedule on, with the id of the execution that it starts. So each firing
is recorded once, whatever number of servers look, and a server that crashed before the start is followed by one that starts
the same execution. Every adapter passes tests/conformance/test_schedules.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from noetl.ports.team import Audit
from noetl.schedules.spec import ScheduleSpec

FIRING_STATES: Final = ("due", "queued", "started", "ended", "skipped", "refused")
OPEN: Final = ("due", "queued")


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stored schedule of a playbook."""

    schedule_id: str
    path: str
    spec: ScheduleSpec
    version: int | None = None  # of the playbook; None: the latest at each firing
    owner: str = ""  # path of the playbook whose `triggers` define it; empty: made by API
    paused: bool = False
    next_at: int | None = None  # the next time; None: it never fires again
    start_at: int | None = None  # when the firing of that time starts
    created_at: int = 0
    created_by: str = ""
    changed_at: int = 0
    revision: int = 0  # counts the changes; assigned by the store


class Firing(msgspec.Struct, frozen=True, omit_defaults=True):
    """Time of a schedule, and what became of it."""

    schedule_id: str
    at: int
    state: str = "due"  # see FIRING_STATES
    execution_id: str = ""
    reason: str = ""  # why it started nothing: late, paused, overlap, limit, replaced, changed, refused
    detail: str = ""
    last_at: int = 0  # of several missed times: the last one
    count: int = 1
    is_more: bool = False  # more than `count`
    decided_at: int = 0


class Schedules(Protocol):
    """Schedules by id, and their firings."""

    async def add(self, schedule: Schedule, act: Audit = None) -> bool:
        """Add a schedule; False if its id exists."""

    async def save(self, schedule: Schedule, firings: Sequence[Firing] = (), act: Audit = None) -> bool:
        """Replace a schedule and record firings, all in one transaction.

        Nothing is changed, and False is returned, if the stored revision is not that of the given schedule. A firing
        whose time is recorded already stays as it is.
        """

    async def remove(self, schedule_id: str, act: Audit = None) -> bool:
        """Remove a schedule and its firings; False if it is unknown."""

    async def schedule(self, schedule_id: str) -> Schedule | None: ...

    async def schedules(
        self,
        *,
        path: str | None = None,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
        within: Sequence[str] | None = None,
    ) -> list[Schedule]:
        """List schedules by id; `after` is the last id of the previous page.

        `within`: only schedules of playbooks in these namespaces.
        """

    async def due(self, now: int, most: int) -> list[Schedule]:
        """List schedules whose next firing starts by now and that are not paused."""

    async def undecided(self, after: tuple[str, int], most: int) -> list[Firing]:
        """List firings in an open state after a schedule and time, by both."""

    async def running(self, schedule_id: str) -> list[Firing]:
        """List firings of a schedule whose executions run, by time."""

    async def decide(self, firing: Firing) -> bool:
        """Replace a firing that is in an open state; False if it is not."""

    async def settle(self) -> int:
        """Mark started firings whose executions have ended; return how many."""

    async def firings(self, schedule_id: str, before: int | None = None, limit: int = 50) -> list[Firing]:
        """List firings of a schedule before a time, newest first."""

    async def tally(self, schedule_id: str) -> dict[str, int]:
        """Count the firings of a schedule by state; `failed` of those that have ended."""

    async def forget(self, before: int) -> int:
        """Delete firings decided before a time that are neither open nor started."""
