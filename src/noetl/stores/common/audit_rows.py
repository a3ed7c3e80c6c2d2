"""Rows of the audit trail in SQL. Tested in tests/conformance/test_audit_chain.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from noetl.audit.chain import Chained, digest_of
from noetl.ports import AuditEntry

UNREADABLE: Final = "unreadable"  # columns that NoETL did not write so, in the detail of an entry


def content_row(entry: AuditEntry) -> tuple[Any, ...]:
    """Encode what an entry says, and its digest, in the order of `put_audit`."""
    detail = msgspec.json.encode(entry.detail).decode()
    said = (entry.at, entry.actor, entry.action, entry.entity, detail, entry.before, entry.after)
    return (*said, digest_of(entry))


def chained_of(row: Sequence[Any]) -> Chained:
    """Decode a row, in the order of `list_audit`.

    A column of a row that was tampered with can hold anything. `unreadable` of the detail has what is no text or no time.
    """
    number, at, actor, action, entity, detail, before, after, *link = row
    texts = {"actor": actor, "action": action, "entity": entity, "before": before, "after": after}
    strange = {name: str(value) for name, value in texts.items() if not isinstance(value, str)}
    texts, found = texts | strange, _detail(detail)
    if not isinstance(at, int):
        at, strange = 0, {"at": str(at), **strange}
    if strange:
        found = {**found, UNREADABLE: strange}
    return Chained(AuditEntry(at, detail=found, number=number, **texts), *link)


def _detail(text: Any) -> dict[str, Any]:
    """Decode a detail, which may have been changed to anything."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, TypeError):
        return {UNREADABLE: {"detail": str(text)}}
