"""Workers, tokens, credentials, idempotency keys and audit trail in PostgreSQL.

Credentials arrive encrypted. Tested in tests/conformance/test_team.py.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from noetl.audit.chain import Chained, Head, extend
from noetl.model.errors import Conflict
from noetl.ports import Audit, AuditEntry, Token, WorkerInfo
from noetl.ports.keychain import DAY_MS, SealedToken
from noetl.ports.team import DataKey
from noetl.stores.common.audit_rows import chained_of
from noetl.stores.common.queries import queries
from noetl.stores.common.work_limits import count_by_limit, names_in
from noetl.stores.postgres.database import PostgresDatabase
from noetl.stores.postgres.rows import audit_rows, text

_decode = msgspec.json.decode
_SQL = queries("postgres")
_LINKING = 0x6E6F65746C6175  # advisory lock of the server that links audit entries
_FORGET_EVERY = 100  # calls on average: delete expired keys


class PostgresTeam:
    """Server tables in the database of a store."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._rows = database.rows
        self._noted = database.noted

    async def enlist(self, worker: WorkerInfo, act: Audit = None) -> None:
        values = list(msgspec.structs.astuple(worker))
        values[2] = list(worker.tags)
        values[-1] = None if worker.credentials is None else list(worker.credentials)
        await self._noted(act, "put_worker", *values)

    async def seen(self, worker_id: str, now: int, active: int) -> str | None:
        rows = await self._rows("note_worker", worker_id, now, active)
        return str(rows[0][0]) if rows else None

    async def set_status(self, worker_id: str, status: str, act: Audit = None) -> bool:
        return bool(await self._noted(act, "set_worker_status", worker_id, status))

    async def leave(self, worker_id: str, registered_at: int) -> bool:
        return bool(await self._rows("leave_worker", worker_id, registered_at))

    async def strike_off(self, before: int) -> int:
        return len(await self._rows("remove_silent_workers", before))

    async def discharge(self, worker_id: str, act: Audit = None) -> None:
        await self._noted(act, "remove_worker", worker_id)

    async def workers(self) -> list[WorkerInfo]:
        rows = await self._rows("list_workers")
        return [_worker(tuple(row)) for row in rows]

    async def held(self, worker_id: str) -> list[Mapping[str, Any]]:
        return [dict(row) for row in await self._rows("held_work", worker_id)]

    async def depths(self) -> list[Mapping[str, Any]]:
        return [{**row, "requires": tuple(row["requires"])} for row in await self._rows("queue_depths")]

    async def flows(self) -> list[Mapping[str, Any]]:
        return [dict(row) for row in await self._rows("queue_flows")]

    async def parked(self) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self._rows("parked")}

    async def limits(self) -> list[Mapping[str, Any]]:
        return [dict(row) for row in await self._rows("limits")]

    async def work_limits(self) -> list[Mapping[str, Any]]:
        rows = await self._rows("work_limits")
        return count_by_limit((names_in(names), queued, leased) for names, queued, leased in rows)

    async def add_token(self, token: Token, act: Audit = None) -> None:
        if not await self._noted(act, "put_token", *msgspec.structs.astuple(token)):
            raise Conflict(f"the token {token.token_id}, or one with the same secret, exists already")

    async def token(self, digest: str) -> Token | None:
        rows = await self._rows("find_token", digest)
        return _token(rows[0]) if rows else None

    async def tokens(self) -> list[Token]:
        return [_token(row) for row in await self._rows("list_tokens")]

    async def valid_tokens(self, token_ids: Collection[str], now: int) -> set[str]:
        return {str(row[0]) for row in await self._rows("valid_tokens", list(token_ids), now)}

    async def revoke(self, token_id: str, now: int, act: Audit = None) -> bool:
        return bool(await self._noted(act, "revoke_token", token_id, now))

    async def used(self, token_id: str, now: int) -> None:
        await self._rows("note_token", token_id, now)

    async def put_credential(
        self, name: str, kind: str, sealed: bytes, about: Mapping[str, Any], now: int, act: Audit = None
    ) -> int:
        values = (name, kind, sealed, text(about), now)
        rows = await self._noted(act, "put_credential", *values, refer=lambda rows: _put(rows[0][0]))
        return int(rows[0][0])

    async def sealed_credential(self, name: str) -> Mapping[str, Any] | None:
        rows = await self._rows("find_credential", name)
        return _credential(rows[0]) if rows else None

    async def credentials(self) -> list[Mapping[str, Any]]:
        return [_credential(row) for row in await self._rows("list_credentials")]

    async def known_credentials(self, names: Collection[str]) -> set[str]:
        return {str(row[0]) for row in await self._rows("known_credentials", list(names))}

    async def delete_credential(self, name: str, act: Audit = None) -> bool:
        return bool(await self._noted(act, "remove_credential", name, refer=lambda rows: (f"version {rows[0][0]}", "")))

    async def data_keys(self) -> list[DataKey]:
        return [DataKey(row[0], bytes(row[1]), row[2]) for row in await self._rows("list_data_keys")]

    async def add_data_key(self, key: DataKey) -> None:
        await self._rows("add_data_key", key.key_id, key.wrapped, key.created_at)

    async def rewrap_data_keys(self, wrapped: Mapping[str, tuple[bytes, bytes]], act: Audit = None) -> int:
        old, new = [one[0] for one in wrapped.values()], [one[1] for one in wrapped.values()]
        return len(await self._noted(act, "rewrap_data_keys", list(wrapped), old, new))

    async def access_token(self, key: str) -> SealedToken | None:
        rows = await self._rows("find_access_token", key)
        return SealedToken(bytes(rows[0][0] or b""), rows[0][1], rows[0][2]) if rows else None

    async def claim_access_token(self, key: str, holder: str, version: int, now: int, until: int) -> bool:
        return bool(await self._rows("claim_access_token", key, holder, version, now, until))

    async def keep_access_token(self, key: str, holder: str, sealed: bytes | None, expires_at: int, now: int) -> bool:
        await self._rows("forget_access_tokens", now - DAY_MS)
        return bool(await self._rows("keep_access_token", key, holder, sealed, expires_at))

    async def keep_key(self, key: str, execution_id: str, now: int, since: int) -> str:
        return (await self.keep_keys({key: execution_id}, now, since))[0]

    async def keep_keys(self, kept: Mapping[str, str], now: int, since: int) -> list[str]:
        rows = await self._rows("keep_keys", list(kept), list(kept.values()), now, since)
        if not random.randrange(_FORGET_EVERY):
            await self._rows("forget_keys", since)
        found: dict[str, str] = {row[0]: row[1] for row in rows}
        return [found[key] for key in kept]

    async def audit(self, entries: Sequence[AuditEntry]) -> None:
        if entries:
            await self._rows("put_audit", audit_rows(entries))

    async def audited(
        self, *, actor: str | None = None, entity: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        rows = await self._rows("list_audit", actor, entity, before, limit)
        return [chained_of(row).entry for row in rows]

    async def link(self, most: int) -> int:
        if not await self._rows("find_new_audit", 1):
            return 0
        async with self._database.transaction() as connection:
            if not await connection.fetchval(_SQL["lock_audit"], _LINKING):
                return 0
            row = await connection.fetchrow(_SQL["find_audit_head"])
            found = [chained_of(one) for one in await connection.fetch(_SQL["find_new_audit"], most)]
            linked, head = extend(Head() if row is None else Head(*row), [(one.entry, one.digest) for one in found])
            numbers = [one.entry.number for one in linked]
            links = zip(*((one.position, one.previous, one.hash) for one in linked), strict=True)
            if linked:
                await connection.execute(_SQL["link_audit"], numbers, *map(list, links))
                await connection.execute(_SQL["set_audit_head"], head.position, head.hash)
            return len(found)

    async def chain(self, after: int, limit: int) -> list[Chained]:
        return [chained_of(row) for row in await self._rows("list_audit_chain", after, limit)]

    async def unlinked(self, after: int, limit: int) -> list[Chained]:
        return [chained_of(row) for row in await self._rows("list_unlinked_audit", after, limit)]

    async def audit_head(self) -> Head:
        rows = await self._rows("find_audit_head")
        return Head(*rows[0]) if rows else Head()


def _worker(row: Sequence[Any]) -> WorkerInfo:
    values = list(row)
    values[2] = tuple(values[2])
    values[-1] = None if values[-1] is None else tuple(values[-1])
    return WorkerInfo(*values)


def _credential(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "about": _decode(row["about"])}


def _token(row: Sequence[Any]) -> Token:
    *fields, namespaces = tuple(row)
    return msgspec.structs.replace(Token(*fields), namespaces=tuple(namespaces))


def _put(version: int) -> tuple[str, str]:
    return f"version {version - 1}" if version > 1 else "", f"version {version}"
