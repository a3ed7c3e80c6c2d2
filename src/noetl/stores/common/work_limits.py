"""Limits of the server on leased work, by pool and kind, judged within a claim.

Tested in tests/conformance/test_work_limits.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from noetl.model.work import WorkItem


class Room:
    """How much more work may be leased under each limit."""

    def __init__(self, limits: Mapping[str, int], leased: Iterable[Sequence[str]]) -> None:
        self._left = dict(limits)
        for names in leased if limits else ():
            self._count(names)

    def has(self, names: Sequence[str]) -> bool:
        """Return whether work that counts for these limits may be leased."""
        return all(self._left.get(name, 1) > 0 for name in names)

    def take(self, names: Sequence[str]) -> bool:
        """Count work that is leased; return False, uncounted, if it is not allowed."""
        if not self.has(names):
            return False
        self._count(names)
        return True

    def _count(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._left:
                self._left[name] -= 1


def limits_text(item: WorkItem) -> str:
    """Return the limits of a work item as they are stored; empty for most work."""
    return msgspec.json.encode(sorted(item.limits)).decode() if item.limits else ""


def names_in(text: str) -> tuple[str, ...]:
    """Return the limits in a stored text."""
    return tuple(msgspec.json.decode(text)) if text else ()


def count_by_limit(rows: Iterable[tuple[Sequence[str], int, int]]) -> list[Mapping[str, Any]]:
    """Add up queued and leased work by limit: limit, queued, leased."""
    queued, leased = Counter[str](), Counter[str]()
    for names, waiting, running in rows:
        for name in names:
            queued[name] += waiting
            leased[name] += running
    return [{"limit": name, "queued": queued[name], "leased": leased[name]} for name in sorted({*queued, *leased})]
