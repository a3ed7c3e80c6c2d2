"""Decides which stored results may go: what has expired, whose scope is over, and what no log refers to.

    ttl         goes at its time, whoever still refers to it
    step        goes when its execution has ended
    execution   goes a while after its execution has ended, as does `workflow`
    permanent   stays; only a `ttl` ends it

Whoever may still read a result keeps it: its execution, parents, children and forks, as long as one of them is under way.
Loads and removes nothing. Tested in tests/unit/engine/test_collect.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from noetl.model.events import Event
from noetl.model.refs import SCHEME

REMOVED: Final = "removed"  # what is told of a result whose bytes are gone
_OWNED: Final = re.compile(re.escape(SCHEME) + r"execution/([^/]+)/")
_ADDRESS: Final = re.compile(re.escape(SCHEME).encode() + rb'execution/[^"\\]+')


class Terms(msgspec.Struct, frozen=True):
    """How long results stay after their execution, and how long what nobody refers to is left alone."""

    retention_ms: int
    grace_ms: int


class Owner(msgspec.Struct, frozen=True):
    """What is known of the execution that a result belongs to."""

    execution_id: str
    logged: bool  # it has a log
    live: bool = False  # somebody who may read its results is under way
    ended_at: int | None = None  # when it had ended, and everything above it


class Verdict(msgspec.Struct, frozen=True):
    """Why a result goes."""

    cause: str  # expired, scope, retention, removed, unlogged
    why: str


def owner_of(ref: str) -> str | None:
    """Give the execution that an address belongs to; None where somebody chose it freely."""
    found = _OWNED.match(ref)
    return found[1] if found else None


def verdict(meta: Mapping[str, Any], owner: Owner | None, now: int, terms: Terms) -> Verdict | None:
    """Tell why a stored result goes now; None where it stays."""
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
    """Tell whether a result is old enough to ask if any log refers to it; never while its execution can go on.

    An artifact may be named in a stored result, or outside.
    """
    stored_at = meta.get("stored_at")
    if owner is None or owner.live or owner.ended_at is None or meta.get("artifact") or not isinstance(stored_at, int):
        return False
    return max(stored_at, owner.ended_at) + terms.grace_ms <= now


def unlogged() -> Verdict:
    return Verdict("unlogged", "nothing in the log refers to it: its worker ended before it could report")


def addresses(events: Iterable[Event]) -> set[str]:
    """Give the addresses of stored results that events name, wherever in them."""
    found: set[str] = set()
    for event in events:
        found.update(match.decode() for match in _ADDRESS.findall(msgspec.json.encode(event.payload)))
    return found


def above(first: Event) -> str | None:
    """Give the execution that started another, or that it was forked from."""
    for name in ("parent", "forked_from"):
        found = (first.payload.get(name) or {}).get("execution_id")
        if found is not None:
            return str(found)
    return None


def moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")


def _days(ms: int) -> str:
    return f"{ms / 86_400_000:g} days"
