"""Claims of a batch for PostgreSQL: those that ask for the same are one, and new work is meant for those who ask.

Where nothing waits in the queue, those who ask get of the batch's own work what the queue would give them; the database
knows whether that is so. Does no I/O. Tested by tests/conformance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import msgspec

from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim

_work = msgspec.json.Decoder(WorkItem)


class Claims:
    """Those who ask for work with a batch, in order."""

    def __init__(self, claims: Sequence[Claim], new: Iterable[WorkItem] = ()) -> None:
        self._claims = claims
        self._groups: dict[tuple[Any, ...], list[int]] = {}  # places in `claims` of those who ask for the same
        for place, claim in enumerate(claims):
            if claim.most > 0:
                key = (tuple(dict.fromkeys(claim.pools)), claim.tags, claim.now, claim.until)
                self._groups.setdefault(key, []).append(place)
        self._meant = _meant(claims, new) if claims else {}

    def meant(self, work_id: str) -> Claim | None:
        """Give whom a piece of new work is for, where nobody comes before it."""
        place = self._meant.get(work_id)
        return None if place is None else self._claims[place]

    def rows(self) -> list[tuple[Any, ...]]:
        """Give a row for each group of claims: its workers, and how much each of them asks for."""
        return [
            (
                [self._claims[place].worker for place in places],
                list(pools),
                list(tags),
                now,
                until,
                [self._claims[place].most for place in places],
            )
            for (pools, tags, now, until), places in self._groups.items()
        ]

    def pools(self) -> list[str]:
        """Give the pools of which anything is asked for."""
        return list(dict.fromkeys(pool for pools, *_ in self._groups for pool in pools))

    def leases(self, rows: Sequence[Sequence[Any]], new: Sequence[Sequence[Any]] = ()) -> tuple[tuple[Lease, ...], ...]:
        """Sort rows (group from 1, epoch, attempt, name, work) to those who asked; `new` are the rows of the batch's work.

        Group 0 is work that was born leased. Epochs were given in the queue's order.
        """
        found: list[list[Lease]] = [[] for _ in self._claims]
        born = {row[3]: row[1] for row in rows if not row[0]}
        texts = {row[0]: row[8] for row in new} if born else {}
        for name, place in self._meant.items() if born else ():
            claim = self._claims[place]
            found[place].append(Lease(_work.decode(texts[name]), born[name], 1, claim.until, claim.worker))
        places = {group: self._in_turn(asking) for group, asking in enumerate(self._groups.values(), 1)}
        for group, epoch, attempt, _, work in sorted((row for row in rows if row[0]), key=lambda row: row[1]):
            place = next(places[group])
            claim = self._claims[place]
            found[place].append(Lease(_work.decode(work), epoch, attempt, claim.until, claim.worker))
        return tuple(tuple(leases) for leases in found)

    def _in_turn(self, places: Sequence[int]) -> Iterator[int]:
        """Give the place of the claim that each piece of a group's work is for, the best work first."""
        for place in places:
            yield from repeat(place, self._claims[place].most)


def _meant(claims: Sequence[Claim], new: Iterable[WorkItem]) -> dict[str, int]:
    """Give the claim that each piece of new work would go to if there were no other work, the best first."""
    left = sorted(new, key=lambda item: -item.priority)
    meant: dict[str, int] = {}
    for place, claim in enumerate(claims):
        kept: list[WorkItem] = []
        wanted = claim.most
        for number, item in enumerate(left):
            if wanted <= 0:
                kept += left[number:]
                break
            if item.pool in claim.pools and item.available_at <= claim.now and set(item.requires) <= set(claim.tags):
                meant[item.work_id] = place
                wanted -= 1
            else:
                kept.append(item)
        left = kept
    return meant
