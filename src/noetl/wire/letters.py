"""Dead letters over HTTP: what is asked and what is answered.

Tested in tests/server/test_dead_letters.py.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Limit, Name

Patch = Annotated[dict[str, Any], Meta(max_length=100)]
Reason = Annotated[str, Meta(min_length=1, max_length=2_000)]


class LettersQuery(Asked, frozen=True):
    """Which dead letters to list."""

    status: tuple[str, ...] = ("pending",)  # pending, replaying, replayed, discarded, all; may be given often
    execution_id: str | None = None
    path: str | None = None
    step: str | None = None
    kind: str | None = None  # of the tool
    group: str | None = None  # a fingerprint
    cursor: str | None = None  # `next` of the page before
    limit: Limit = 100


class LetterReplay(Asked, frozen=True):
    """Do the work of a dead letter once more; `patch` is {"spec.url": "https://…"}, over what the playbook says."""

    patch: Patch = field(default_factory=dict)
    dry_run: bool = False


class LettersReplay(LetterReplay, frozen=True):
    """Do the work of all letters that wait and fit: of a group, an execution, a playbook, a step; or of `all`."""

    group: Name | None = None
    execution_id: Name | None = None
    path: Name | None = None
    step: Name | None = None
    kind: Name | None = None
    all: bool = False


class LetterDiscard(Asked, frozen=True):
    """Close a dead letter without doing its work."""

    reason: Reason


class LettersDiscard(LetterDiscard, frozen=True):
    """Close all letters that wait and fit."""

    group: Name | None = None
    execution_id: Name | None = None
    path: Name | None = None
    step: Name | None = None
    kind: Name | None = None
    all: bool = False


class LetterRow(Answer, frozen=True):
    """A dead letter in a list."""

    message_id: str
    execution_id: str
    path: str
    step_id: str
    run_id: str
    status: str
    reason: str
    attempts: int
    replays: int
    last_error: str
    fingerprint: str
    first_seen: int
    last_seen: int
    loop_index: int | None = None
    loop_key: str | None = None
    task: str = ""
    tool_kind: str | None = None
    sink_id: str | None = None


class Letter(LetterRow, frozen=True):
    """All that is known of a dead letter."""

    last_stack: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    context_excerpt: str = ""
    error: dict[str, Any] = field(default_factory=dict)
    closed_at: int | None = None
    closed_by: str = ""
    note: str = ""


class Letters(Answer, frozen=True):
    """A page of dead letters, the one that failed last first; `next` is the cursor of the one after."""

    letters: list[LetterRow]
    next: str | None = None


class LetterGroup(Answer, frozen=True):
    """Dead letters of one cause; what is told of one is told of the last."""

    fingerprint: str
    count: int
    executions: int
    path: str
    step_id: str
    task: str
    tool_kind: str | None
    reason: str
    last_error: str
    message_id: str
    first_seen: int
    last_seen: int


class LetterGroups(Answer, frozen=True):
    """The causes of dead letters, the one with most letters first."""

    groups: list[LetterGroup]


class LetterPreview(Answer, frozen=True):
    """What a replay would be given."""

    message_id: str
    step_id: str
    loop_index: int | None
    payload: dict[str, Any]


class Replayed(Answer, frozen=True):
    """How many dead letters were put in the queue once more, and which; with `dry_run`, which would be."""

    count: int
    letters: list[str]
    dry_run: bool = False
    preview: list[LetterPreview] = field(default_factory=list)


class Discarded(Answer, frozen=True):
    """How many dead letters were closed."""

    count: int
    letters: list[str]
