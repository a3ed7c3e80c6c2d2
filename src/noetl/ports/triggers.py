"""Ports of triggers other than schedules, and of sources of subscriptions.

A trigger is stored as data; `noetl.triggers` knows what each kind holds. Every adapter passes
tests/conformance/test_triggers.py. What a subscription has taken in is written with the start of its execution
(`Commit.intake`); adapters of that pass tests/conformance/test_subscriptions.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from noetl.ports.team import Audit


class StoredTrigger(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stored trigger of a playbook."""

    kind: str  # webhook, ended, notification, subscription
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


class Progress(msgspec.Struct, frozen=True):
    """How far a subscription got in its source."""

    position: Mapping[str, Any] = {}  # as the source writes it
    revision: int = 0  # counts the changes of the position
    received: int = 0  # messages that started executions
    poisoned: int = 0  # messages that became dead letters
    last_message: str = ""
    last_at: int = 0
    status: Mapping[str, Any] = {}  # of the last polls: error, lag


class Subscriptions(Protocol):
    """Progress of subscriptions by state id, and the messages that they remember.

    A state id is the id of the trigger, `@` and 32 characters, which stand for its source.
    """

    async def progress(self, state_id: str) -> Progress: ...

    async def note(self, state_id: str, status: Mapping[str, Any]) -> None:
        """Replace the status; position and revision stay."""

    async def known(self, state_id: str, message_ids: Sequence[str], now: int) -> set[str]:
        """Return which messages were taken in before; note that they are still offered."""

    async def forget(self, state_id: str, before: int) -> int:
        """Forget messages that the source last offered before a time; return how many."""

    async def prune(self) -> int:
        """Remove the states of subscriptions that are no longer stored; return how many."""


Known = Callable[[Sequence[str]], Awaitable[set[str]]]  # message ids → those that were taken in before


class Message(msgspec.Struct, frozen=True):
    """Message of a source."""

    message_id: str
    data: Any = None
    facts: Mapping[str, Any] = {}  # more that templates see, such as `file`
    position: Mapping[str, Any] | None = None  # after it; None: unchanged
    problem: str = ""  # why it cannot be used; it becomes a dead letter


class Page(msgspec.Struct, frozen=True):
    """New messages after a position."""

    messages: tuple[Message, ...] = ()
    position: Mapping[str, Any] = {}  # after all of them
    lag: int = 0  # messages that the source holds besides these
    more: bool = False  # the next poll finds more at once


class Source(Protocol):
    """Where a subscription gets its messages from: it offers each at least once.

    Every method but `close` raises SourceUnavailable.
    """

    is_ordered: bool  # positions alone tell new messages; otherwise the store remembers ids

    async def poll(self, position: Mapping[str, Any], most: int, known: Known) -> Page:
        """Return the next messages after a position, without known ones."""

    async def ack(self, messages: Sequence[Message]) -> None:
        """Note that messages were taken in: their starts or dead letters are durable."""

    async def is_woken(self) -> bool:
        """Return whether the source has said that it has messages."""

    async def close(self) -> None: ...
