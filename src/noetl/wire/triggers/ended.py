"""Bodies about triggers of ended executions.

Tested in tests/server/api/triggers/test_ended_triggers.py.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from noetl.triggers.ended import Status
from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Name, Version
from noetl.wire.triggers.fields import TriggerName


class TriggerAsked(Asked, frozen=True):
    """Create a trigger: a playbook to start, and which ends of executions start it."""

    name: TriggerName
    path: Name  # of the playbook to start
    after: Name  # pattern of the paths of executions that it watches: `etl/*`
    status: Annotated[tuple[Status, ...], Meta(max_length=10)] = ()  # default: any end
    tags: Annotated[tuple[Name, ...], Meta(max_length=50)] = ()  # the execution has all of these
    payload: dict[str, Any] = field(default_factory=dict)  # templates over `execution`
    version: Version | None = None  # default: the latest at each start
    paused: bool = False


class TriggerRow(Answer, frozen=True):
    """A trigger; `owner` is the playbook whose `triggers` define it, if one does.

    `problem` says why what is stored cannot be read; such a trigger starts nothing.
    """

    trigger_id: str
    path: str
    after: str
    paused: bool
    status: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    payload: dict[str, Any] = field(default_factory=dict)
    version: int | None = None
    owner: str = ""
    created_at: int = 0
    created_by: str = ""
    changed_at: int = 0
    problem: str = ""


class TriggerRows(Answer, frozen=True):
    """A page of triggers by id; `next` is the cursor of the next page."""

    triggers: list[TriggerRow]
    next: str | None = None
