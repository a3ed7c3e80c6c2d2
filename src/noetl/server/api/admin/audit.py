"""The audit trail of changes. Tested in tests/server/auth/test_gate.py."""

from __future__ import annotations

from noetl.server.http.endpoint import Call, Noun
from noetl.wire.answers import AuditRow, AuditRows
from noetl.wire.requests import AuditQuery

noun = Noun("audit", "The audit trail: who changed what.")


@noun.route("GET", "/api/audit", "admin")
async def listed(call: Call, query: AuditQuery) -> AuditRows:
    """List audit entries, the newest first."""
    found = await call.services.team.audited(
        actor=query.actor, entity=query.entity, before=query.cursor, limit=query.limit
    )
    rows = [
        AuditRow(
            number=one.number, at=one.at, actor=one.actor, action=one.action, entity=one.entity, detail=dict(one.detail)
        )
        for one in found
    ]
    return AuditRows(entries=rows, next=rows[-1].number if len(rows) == query.limit else None)
