"""Rows of the audit trail in SQL. Tested in tests/conformance/test_audit_chain.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from noetl.audit.chain import Chained, digest_of
from noetl.ports import AuditEntry


def content_row(entry: AuditEntry) -> tuple[Any, ...]:
    """Encode what an entry says, and its digest, in the order of `put_audit`."""
    detail = msgspec.json.encode(entry.detail).decode()
    said = (entry.at, entry.actor, entry.action, entry.entity, detail, entry.before, entry.after)
    return (*said, digest_of(entry))


def chained_of(row: Sequence[Any]) -> Chained:
    """Decode a row, in the order of `list_audit`."""
    number, at, actor, action, entity, detail, before, after, *link = row
    return Chained(AuditEntry(at, actor, action, entity, _detail(detail), number, before, after), *link)


def _detail(text: Any) -> dict[str, Any]:
    """Decode a detail, which may have been changed to anything."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, TypeError):
        return {"unreadable": str(text)}
