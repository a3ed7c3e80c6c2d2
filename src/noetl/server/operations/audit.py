"""Verify and export the audit trail of a store, and verify an export.

An export is a file of JSON lines: entries in the order of the hash chain, then the head. Tested in
tests/conformance/test_audit_chain.py and tests/acceptance/admin/test_audit_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import msgspec

from noetl.audit.chain import Chained, Head
from noetl.audit.verify import Break, Verifier
from noetl.model.errors import InvalidInput
from noetl.ports import AuditEntry, AuditTrail
from noetl.wire.answers import AuditBreak, AuditHead, AuditLink, AuditVerified

_PAGE: Final = 500
_HASH_SIZE: Final = 64


class _HeadLine(msgspec.Struct, forbid_unknown_fields=True):
    head: AuditHead


async def verify_trail(trail: AuditTrail, expect: str | None = None) -> AuditVerified:
    """Recompute the chain of a store; `expect` is a place with the hash that it had."""
    verifier = Verifier(_expected(expect))
    while True:
        head = await trail.audit_head()  # before the page: whatever is linked later is on the next one
        page = await trail.chain(verifier.head.position, _PAGE)
        if not page or not verifier.feed(page):
            break
    waiting = [one async for one in _unlinked(trail)]
    return _result(verifier, verifier.finish(head, waiting), len(waiting))


async def _unlinked(trail: AuditTrail) -> AsyncIterator[Chained]:
    after = 0
    while page := await trail.unlinked(after, _PAGE):
        after = page[-1].entry.number
        for one in page:
            yield one


def verify_lines(lines: Iterable[bytes], expect: str | None = None) -> AuditVerified:
    """Recompute the chain of an export. Raises InvalidInput if it is none."""
    verifier, head = Verifier(_expected(expect)), None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        found = _decode(line, number)
        if isinstance(found, Head):
            head = found
        elif head is not None:
            raise InvalidInput(f"Line {number} follows the head of the chain, which is the last line of an export.")
        else:
            verifier.feed([found])
    if head is None:
        raise InvalidInput("The file has no head of the chain: it is no whole export. Export it again.")
    return _result(verifier, verifier.finish(head), 0)


def _decode(line: bytes, number: int) -> Chained | Head:
    try:
        if line.lstrip().startswith(b'{"head"'):
            head = msgspec.json.decode(line, type=_HeadLine).head
            return Head(head.position, head.hash)
        row = msgspec.json.decode(line, type=AuditLink)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"Line {number} is no line of an audit export: {error}.") from None
    entry = AuditEntry(row.at, row.actor, row.action, row.entity, row.detail, row.number, row.before, row.after)
    return Chained(entry, row.digest, row.position, row.previous, row.hash)


def row_of(entry: AuditEntry) -> dict[str, Any]:
    """Return the fields of an entry for an answer."""
    return {**{name: getattr(entry, name) for name in entry.__struct_fields__}, "detail": dict(entry.detail)}


def link_row(one: Chained) -> AuditLink:
    """Return an entry with its hashes, as it is exported."""
    return AuditLink(
        **row_of(one.entry),
        digest=one.digest,
        position=one.position or 0,
        previous=one.previous or "",
        hash=one.hash or "",
    )


def _expected(given: str | None) -> list[Head]:
    """Return the head of `POSITION:HASH`. Raises InvalidInput."""
    if given is None:
        return []
    position, _, found = given.partition(":")
    if not (position.isascii() and position.isdecimal() and len(position) < 19 and len(found) == _HASH_SIZE):
        raise InvalidInput(
            f"Not a head of the chain: {given!r}. Write POSITION:HASH, as `noetl audit verify` prints it."
        )
    return [Head(int(position), found)]


def _result(verifier: Verifier, broken: Break | None, pending: int) -> AuditVerified:
    head = AuditHead(position=verifier.head.position, hash=verifier.head.hash)
    what = None if broken is None else AuditBreak(**msgspec.structs.asdict(broken))
    return AuditVerified(
        is_intact=broken is None, entries=verifier.head.position, pending=pending, head=head, broken=what
    )
