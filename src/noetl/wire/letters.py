"""Bodies about dead letters. Tested in tests/server/api/test_dlq.py."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from noetl.wire.answers import Answer
from noetl.wire.requests import Asked, Limit, Name

Patch = Annotated[dict[str, Any], Meta(max_length=100)]
Reason = Annotated[str, Meta(min_length=1, max_length=2_000)]


class LettersQuery(Asked, frozen=True):
    """Filter of a list of dead letters."""

    status: tuple[str, ...] = ("pending",)  # pending, replaying, replayed, discarded, all; repeatable
    execution_id: str | None = None
    path: str | None = None
    step: str | None = None
    kind: str | None = None  # tool kind
    group: str | None = None  # a fingerprint
    cursor: str | None = None  # `next` of the previous page
    limit: Limit = 100


class LetterReplay(Asked, frozen=True):
    """Replay a dead letter; `patch` overrides fields, such as `spec.url`."""

    patch: Patch = field(default_factory=dict)
    dry_run: bool = False


class LettersReplay(LetterReplay, frozen=True):
    """Replay all pending letters that match any field, or `all`."""

    group: Name | None = None
    execution_id: Name | None = None
    path: Name | None = None
    step: Name | None = None
    kind: Name | None = None
    all: bool = False


class LetterDiscard(Asked, frozen=True):
    """Discard a dead letter: its work is not done."""

    reason: Reason


class LettersDiscard(LetterDiscard, frozen=True):
    """Discard all pending letters that match."""

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
    """A dead letter in detail."""

    last_stack: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    context_excerpt: str = ""
    error: dict[str, Any] = field(default_factory=dict)
    closed_at: int | None = None
    closed_by: str = ""
    note: str = ""


class Letters(Answer, frozen=True):
    """A page of dead letters, the newest first; `next` is the next cursor."""

    letters: list[LetterRow]
    next: str | None = None


class LetterGroup(Answer, frozen=True):
    """Dead letters with the same cause; details are those of the most recent one."""

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
    """Groups of dead letters, the largest first."""

    groups: list[LetterGroup]


class LetterPreview(Answer, frozen=True):
    """Input of a replay in a dry run."""

    message_id: str
    step_id: str
    loop_index: int | None
    payload: dict[str, Any]


class Replayed(Answer, frozen=True):
    """Number and ids of replayed dead letters; with `dry_run`, of those that would be."""

    count: int
    letters: list[str]
    dry_run: bool = False
    preview: list[LetterPreview] = field(default_factory=list)


class Discarded(Answer, frozen=True):
    """Number and ids of discarded dead letters."""

    count: int
    letters: list[str]
