"""Garbage collection of stored results: which ones may be deleted.

    ttl         deleted at its time, even if something refers to it
    step        deleted when its execution has ended
    execution   deleted after the retention time of its ended execution; so is `workflow`
    permanent   kept; only a `ttl` ends it

A result is kept while its execution, or a parent, child or fork of it, is running. Loads and deletes nothing. Tested in tests/unit/engine/queries/test_result_gc.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from noetl.model.events import Event
from noetl.model.refs import SCHEME

REMOVED: Final = "removed"  # the state of a result whose bytes were deleted
_OWNED: Final = re.compile(re.escape(SCHEME) + r"execution/([^/]+)/")
_ADDRESS: Final = re.compile(re.escape(SCHEME).encode() + rb'execution/[^"\\]+')


class Terms(msgspec.Struct, frozen=True):
    """Retention of results, and the grace period of unreferenced ones."""

    retention_ms: int
    grace_ms: int


class Owner(msgspec.Struct, frozen=True):
    """The execution that a result belongs to."""

    execution_id: str
    logged: bool  # it has a log
    live: bool = False  # an execution that may read its results is running
    ended_at: int | None = None  # when it and all its ancestors had ended


class Verdict(msgspec.Struct, frozen=True):
    """Why a result is deleted."""

    cause: str  # expired, scope, retention, removed, unlogged
    why: str


def owner_of(ref: str) -> str | None:
    """Return the execution that an address belongs to; None for a free address."""
    match = _OWNED.match(ref)
    return match[1] if match else None


def verdict(meta: Mapping[str, Any], owner: Owner | None, now: int, terms: Terms) -> Verdict | None:
    """Return why a stored result is deleted now; None if it is kept."""
    expires = meta.get("expires_at")
    if isinstance(expires, int) and expires <= now:
        return Verdict("expired", f"its `ttl` ended at {moment(expires)}")
    scope = meta.get("scope") or "execution"
    if owner is None or owner.live or scope == "permanent":
        return None
    if not owner.logged:
        return Verdict("removed", f"execution {owner.execution_id} was removed")
    if owner.ended_at is None:
        return None
    ended = f"execution {owner.execution_id} ended at {moment(owner.ended_at)}"
    if scope == "step":
        return Verdict("scope", f"its scope is `step`, and {ended}")
    if owner.ended_at + terms.retention_ms <= now:
        return Verdict("retention", f"{ended}, and its results were kept for {_days(terms.retention_ms)} after that")
    return None


def may_be_unlogged(meta: Mapping[str, Any], owner: Owner | None, now: int, terms: Terms) -> bool:
    """Return whether a result is old enough to check if a log refers to it.

    Artifacts are excluded: a stored result or another system may refer to them.
    """
    stored_at = meta.get("stored_at")
    if owner is None or owner.live or owner.ended_at is None or meta.get("artifact") or not isinstance(stored_at, int):
        return False
    return max(stored_at, owner.ended_at) + terms.grace_ms <= now


def unlogged() -> Verdict:
    return Verdict("unlogged", "nothing in the log refers to it: its worker ended before it could report")


def addresses(events: Iterable[Event]) -> set[str]:
    """Return the addresses of stored results anywhere in the payloads of events."""
    refs: set[str] = set()
    for event in events:
        refs.update(match.decode() for match in _ADDRESS.findall(msgspec.json.encode(event.payload)))
    return refs


def above(first: Event) -> str | None:
    """Return the parent of an execution, or the execution it was forked from."""
    for name in ("parent", "forked_from"):
        execution_id = (first.payload.get(name) or {}).get("execution_id")
        if execution_id is not None:
            return str(execution_id)
    return None


def moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")


def _days(ms: int) -> str:
    return f"{ms / 86_400_000:g} days"
