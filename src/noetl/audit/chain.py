"""Hash chain of the audit trail: digests of entries, and links between them.

A digest covers all that an entry says; it is written with the entry. A link covers the entry's place, its number, its digest
and the link before it. A store with one writer adds the link in the same transaction. On PostgreSQL that would make every
audited commit of every server wait for the one before it, so there a background task adds the links of committed entries
within a second. Tested in tests/unit/audit.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from noetl.model.commit import AuditEntry

START: Final = "0" * 64  # stands for the link before the first one
REFUSED: Final = ""  # the link of a row that NoETL did not write
_encode = msgspec.json.Encoder(order="sorted").encode


class Head(msgspec.Struct, frozen=True):
    """End of a chain: the place and the link of its last entry."""

    position: int = 0
    hash: str = START


class Chained(msgspec.Struct, frozen=True):
    """Audit entry with its place in the chain."""

    entry: AuditEntry
    digest: str
    position: int | None = None  # None: it has no link yet
    previous: str | None = None
    hash: str | None = None


def digest_of(entry: AuditEntry) -> str:
    """Return the hash of all that an entry says."""
    detail = dict(entry.detail)
    said = [entry.at, entry.actor, entry.action, entry.entity, detail, entry.before, entry.after]
    return sha256(_encode(said)).hexdigest()


def link_of(position: int, number: int, digest: str, previous: str) -> str:
    """Return the link of an entry at its place in the chain."""
    return sha256(f"{position} {number} {digest} {previous}".encode()).hexdigest()


def extend(head: Head, entries: Iterable[tuple[AuditEntry, str]]) -> tuple[list[Chained], Head]:
    """Link entries with their digests to a chain; return them and the new head.

    A row whose digest is not that of its content was not written by NoETL: it gets no place.
    """
    found: list[Chained] = []
    for entry, digest in entries:
        if digest_of(entry) != digest:
            found.append(Chained(entry, digest, hash=REFUSED))
            continue
        position = head.position + 1
        link = link_of(position, entry.number, digest, head.hash)
        found.append(Chained(entry, digest, position, head.hash, link))
        head = Head(position, link)
    return found, head


def with_references(act: AuditEntry | None, before: str = "", after: str = "") -> AuditEntry | None:
    """Return an audit entry with references to its object before and after the change."""
    return None if act is None else replace(act, before=before, after=after)


def version_of(version: int, content_hash: str) -> str:
    """Return the reference to a version of a playbook."""
    return f"version {version} {content_hash}"
