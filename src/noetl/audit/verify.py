"""Verify the hash chain of an audit trail, entry by entry.

Finds what was done to the rows of a store, or to the lines of an export: the first entry that was changed, deleted, inserted
or reordered. Tested in tests/unit/audit and tests/conformance/test_audit_chain.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from noetl.audit.chain import REFUSED, Chained, Head, digest_of, link_of


class Break(msgspec.Struct, frozen=True):
    """First place at which a chain does not hold."""

    position: int  # in the chain
    number: int | None  # of the entry; None: it is gone
    reason: str  # changed, deleted, inserted, reordered, other-head
    detail: str


class Verifier:
    """Check entries in the order of the chain; `broken` is the first mistake."""

    def __init__(self, expected: Sequence[Head] = ()) -> None:
        self.head = Head()
        self.broken: Break | None = None
        self._expected = {one.position: one.hash for one in expected if one.position}

    def feed(self, entries: Iterable[Chained]) -> bool:
        """Check the next entries; return whether the chain holds so far."""
        for one in entries:
            if self.broken is None:
                self.broken = self._check(one)
        return self.broken is None

    def _check(self, one: Chained) -> Break | None:
        number, position, due = one.entry.number, one.position, self.head.position + 1
        if not isinstance(position, int) or one.hash is None or one.previous is None:
            return Break(due, number, "inserted", f"Entry {number} has no place in the chain.")
        if position > due:
            return Break(due, None, "deleted", _gone(due, position - 1) + f" The next entry is {number}.")
        if position < due:
            return Break(position, number, "inserted", f"Entry {number} has place {position}, which another one has.")
        digest = digest_of(one.entry)
        if digest != one.digest or link_of(position, number, digest, one.previous) != one.hash:
            return self._altered(one, digest)
        if one.previous != self.head.hash:
            what = f"Entry {number} follows an entry with another hash: the one before it was replaced."
            return Break(position, number, "changed", what)
        self.head = Head(position, one.hash)
        if self._expected.get(position, one.hash) != one.hash:
            return Break(position, number, "other-head", f"Place {position} had another hash: the chain was rewritten.")
        return None

    def _altered(self, one: Chained, digest: str) -> Break:
        """Return whether the content of an entry was changed, or only its place."""
        number, position = one.entry.number, one.position or 0
        if digest == one.digest:
            what = f"Entry {number} is not at its place: its number, its place or its link was changed."
            return Break(position, number, "reordered", what)
        return Break(position, number, "changed", f"The content of entry {number} is not what its hash was made of.")

    def finish(self, head: Head, pending: Iterable[Chained] = ()) -> Break | None:
        """Compare the end with the head that is kept apart; check entries without a link."""
        if self.broken is not None:
            return self.broken
        last = max((head, Head(*max(self._expected.items(), default=(0, "")))), key=lambda one: one.position)
        if last.position > self.head.position:
            what = _gone(self.head.position + 1, last.position)
            self.broken = Break(self.head.position + 1, None, "deleted", what)
        elif head != self.head:
            what = f"The chain ends at place {self.head.position}, and its head is kept as that of {head.position}."
            self.broken = Break(self.head.position, None, "inserted", what)
        else:
            forged = (one for one in pending if one.hash == REFUSED or digest_of(one.entry) != one.digest)
            self.broken = next((self._forged(one) for one in forged), None)
        return self.broken

    def _forged(self, one: Chained) -> Break:
        number = one.entry.number
        return Break(self.head.position + 1, number, "inserted", f"Entry {number} was not written by NoETL.")


def _gone(first: int, last: int) -> str:
    return (
        f"The entry at place {first} is gone."
        if first == last
        else f"The entries at places {first} to {last} are gone."
    )
