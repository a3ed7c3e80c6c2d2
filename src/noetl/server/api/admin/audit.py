"""The audit trail of changes. Tested in tests/server/api/test_audit_chain.py."""

from __future__ import annotations

from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.audit import link_row, row_of, verify_trail
from noetl.wire.answers import AuditHead, AuditLinks, AuditRow, AuditRows, AuditVerified
from noetl.wire.requests import AuditChainQuery, AuditQuery, AuditVerifyQuery

noun = Noun("audit", "The audit trail: who changed what.")


@noun.route("GET", "/api/audit", "admin")
async def listed(call: Call, query: AuditQuery) -> AuditRows:
    """List audit entries, the newest first."""
    found = await call.services.team.audited(
        actor=query.actor, entity=query.entity, before=query.cursor, limit=query.limit
    )
    rows = [AuditRow(**row_of(one)) for one in found]
    return AuditRows(entries=rows, next=rows[-1].number if len(rows) == query.limit else None)


@noun.route("GET", "/api/audit/export", "admin")
async def export(call: Call, query: AuditChainQuery) -> AuditLinks:
    """List audit entries with their hashes, in the order of the hash chain."""
    head = await call.services.team.audit_head()
    rows = [link_row(one) for one in await call.services.team.chain(query.after, query.limit)]
    following = rows[-1].position if len(rows) == query.limit else None
    return AuditLinks(entries=rows, head=AuditHead(position=head.position, hash=head.hash), next=following)


@noun.route("GET", "/api/audit/verify", "admin")
async def verify(call: Call, query: AuditVerifyQuery) -> AuditVerified:
    """Recompute the hash chain and name the first entry that was tampered with."""
    return await verify_trail(call.services.team, query.expect)
