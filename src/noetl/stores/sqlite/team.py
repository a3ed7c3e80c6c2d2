"""Workers, tokens, credentials, idempotency keys and audit trail in a SQLite file.

Credentials arrive encrypted. Tested in tests/conformance/test_team.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from noetl.audit.chain import REFUSED, Chained, Head, with_references
from noetl.model.errors import Conflict
from noetl.ports import Audit, AuditEntry, Token, WorkerInfo
from noetl.ports.keychain import DAY_MS, SealedToken
from noetl.ports.team import DataKey
from noetl.stores.common.audit_rows import chained_of
from noetl.stores.common.queries import queries
from noetl.stores.common.work_limits import count_by_limit, names_in
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.rows import read_audit_head, text, write_audit

_SQL = queries("sqlite")
_decode = msgspec.json.decode
_CREDENTIAL = ("name", "kind", "about", "version", "created_at", "updated_at")


class SqliteTeam:
    """Server tables in the file of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enlist(self, worker: WorkerInfo, act: Audit = None) -> None:
        values = list(msgspec.structs.astuple(worker))
        values[2] = text(worker.tags)
        values[-1] = None if worker.credentials is None else text(worker.credentials)
        await self._write("put_worker", *values, act=act)

    async def seen(self, worker_id: str, now: int, active: int) -> str | None:
        def job(connection: sqlite3.Connection) -> Any:
            return connection.execute(_SQL["note_worker"], (now, active, worker_id)).fetchone()

        row = await self._database.write(job)
        return None if row is None else str(row[0])

    async def set_status(self, worker_id: str, status: str, act: Audit = None) -> bool:
        return await self._write("set_worker_status", status, worker_id, act=act) > 0

    async def leave(self, worker_id: str, registered_at: int) -> bool:
        return await self._write("leave_worker", worker_id, registered_at) > 0

    async def strike_off(self, before: int) -> int:
        return await self._write("remove_silent_workers", before)

    async def discharge(self, worker_id: str, act: Audit = None) -> None:
        await self._write("remove_worker", worker_id, act=act)

    async def workers(self) -> list[WorkerInfo]:
        rows = await self._rows("list_workers")
        return [_worker(row) for row in rows]

    async def held(self, worker_id: str) -> list[Mapping[str, Any]]:
        names = ("work_id", "attempt", "until")
        return [dict(zip(names, row, strict=True)) for row in await self._rows("held_work", worker_id)]

    async def depths(self) -> list[Mapping[str, Any]]:
        names = ("pool", "requires", "queued", "leased", "dead", "oldest")
        found = [dict(zip(names, row, strict=True)) for row in await self._rows("queue_depths")]
        return [{**row, "requires": tuple(_decode(row["requires"] or "[]"))} for row in found]

    async def flows(self) -> list[Mapping[str, Any]]:
        names = ("pool", "priority", "flow", "queued", "oldest")
        return [dict(zip(names, row, strict=True)) for row in await self._rows("queue_flows")]

    async def parked(self) -> Mapping[str, int]:
        return dict(await self._rows("parked"))

    async def limits(self) -> list[Mapping[str, Any]]:
        names = ("group", "running", "waiting", "oldest")
        return [dict(zip(names, row, strict=True)) for row in await self._rows("limits")]

    async def work_limits(self) -> list[Mapping[str, Any]]:
        rows = await self._rows("work_limits")
        return count_by_limit((names_in(names), queued, leased) for names, queued, leased in rows)

    async def add_token(self, token: Token, act: Audit = None) -> None:
        try:
            await self._write("put_token", *msgspec.structs.astuple(token)[:-1], text(token.namespaces), act=act)
        except sqlite3.IntegrityError:
            raise Conflict(f"the token {token.token_id}, or one with the same secret, exists already") from None

    async def token(self, digest: str) -> Token | None:
        rows = await self._rows("find_token", digest)
        return _token(rows[0]) if rows else None

    async def tokens(self) -> list[Token]:
        return [_token(row) for row in await self._rows("list_tokens")]

    async def valid_tokens(self, token_ids: Collection[str], now: int) -> set[str]:
        asked = msgspec.json.encode(list(token_ids)).decode()
        return {str(row[0]) for row in await self._rows("valid_tokens", asked, now)}

    async def revoke(self, token_id: str, now: int, act: Audit = None) -> bool:
        return await self._write("revoke_token", now, token_id, act=act) > 0

    async def used(self, token_id: str, now: int) -> None:
        await self._write("note_token", now, token_id)

    async def put_credential(
        self, name: str, kind: str, sealed: bytes, about: Mapping[str, Any], now: int, act: Audit = None
    ) -> int:
        def job(connection: sqlite3.Connection) -> int:
            values = (name, kind, sealed, text(about), now)
            version = int(connection.execute(_SQL["put_credential"], values).fetchone()[0])
            was = f"version {version - 1}" if version > 1 else ""
            write_audit(connection, [with_references(act, was, f"version {version}")])
            return version

        return await self._database.write(job)

    async def sealed_credential(self, name: str) -> Mapping[str, Any] | None:
        rows = await self._rows("find_credential", name)
        if not rows:
            return None
        name, kind, sealed, *rest = rows[0]
        return {**_credential((name, kind, *rest)), "sealed": bytes(sealed)}

    async def credentials(self) -> list[Mapping[str, Any]]:
        return [_credential(row) for row in await self._rows("list_credentials")]

    async def known_credentials(self, names: Collection[str]) -> set[str]:
        asked = msgspec.json.encode(list(names)).decode()
        return {str(row[0]) for row in await self._rows("known_credentials", asked)}

    async def delete_credential(self, name: str, act: Audit = None) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            row = connection.execute(_SQL["remove_credential"], (name,)).fetchone()
            write_audit(connection, [] if row is None else [with_references(act, f"version {row[0]}")])
            return row is not None

        return await self._database.write(job)

    async def data_keys(self) -> list[DataKey]:
        return [DataKey(row[0], bytes(row[1]), row[2]) for row in await self._rows("list_data_keys")]

    async def add_data_key(self, key: DataKey) -> None:
        await self._write("add_data_key", key.key_id, key.wrapped, key.created_at)

    async def rewrap_data_keys(self, wrapped: Mapping[str, tuple[bytes, bytes]], act: Audit = None) -> int:
        def job(connection: sqlite3.Connection) -> int:
            write_audit(connection, [act])
            rewrap = _SQL["rewrap_data_key"]
            return sum(connection.execute(rewrap, (name, *both)).rowcount for name, both in wrapped.items())

        return await self._database.write(job)

    async def access_token(self, key: str) -> SealedToken | None:
        rows = await self._rows("find_access_token", key)
        return SealedToken(bytes(rows[0][0] or b""), *rows[0][1:]) if rows else None

    async def claim_access_token(self, key: str, holder: str, version: int, now: int, until: int) -> bool:
        return await self._write("claim_access_token", key, holder, version, now, until) > 0

    async def keep_access_token(self, key: str, holder: str, sealed: bytes | None, expires_at: int, now: int) -> bool:
        def job(connection: sqlite3.Connection) -> int:
            connection.execute(_SQL["forget_access_tokens"], (now - DAY_MS, now - DAY_MS))
            return connection.execute(_SQL["keep_access_token"], (key, holder, sealed, expires_at)).rowcount

        return await self._database.write(job) > 0

    async def keep_key(self, key: str, execution_id: str, now: int, since: int) -> str:
        return (await self.keep_keys({key: execution_id}, now, since))[0]

    async def keep_keys(self, kept: Mapping[str, str], now: int, since: int) -> list[str]:
        def job(connection: sqlite3.Connection) -> list[str]:
            connection.execute(_SQL["forget_keys"], (since,))
            keep = _SQL["keep_key"]
            return [str(connection.execute(keep, (*one, now, since)).fetchone()[0]) for one in kept.items()]

        return await self._database.write(job)

    async def audit(self, entries: Sequence[AuditEntry]) -> None:
        if entries:
            await self._database.write(lambda connection: write_audit(connection, entries))

    async def audited(
        self, *, actor: str | None = None, entity: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        rows = await self._rows("list_audit", actor, entity, before, limit)
        return [chained_of(row).entry for row in rows]

    async def link(self, most: int) -> int:  # noqa: ARG002  every entry is linked when it is written
        return 0

    async def chain(self, after: int, limit: int) -> list[Chained]:
        return [chained_of(row) for row in await self._rows("list_audit_chain", after, limit)]

    async def unlinked(self, after: int, limit: int) -> list[Chained]:
        found = [chained_of(row) for row in await self._rows("list_unlinked_audit", after, limit)]
        return [msgspec.structs.replace(one, hash=REFUSED) for one in found]  # NoETL writes none without a link

    async def audit_head(self) -> Head:
        return (await self._database.read(read_audit_head))[0]

    async def _rows(self, name: str, *values: Any) -> list[Any]:
        run = self._database.read if name.startswith("find_") else self._database.run
        return await run(lambda connection: connection.execute(_SQL[name], values).fetchall())

    async def _write(self, name: str, *values: Any, act: Audit = None) -> int:
        def job(connection: sqlite3.Connection) -> int:
            changed = connection.execute(_SQL[name], values).rowcount
            write_audit(connection, [act] if changed else [])
            return changed

        return await self._database.write(job)


def _token(row: Sequence[Any]) -> Token:
    return msgspec.structs.replace(Token(*row[:-1]), namespaces=tuple(_decode(row[-1])))


def _worker(row: Sequence[Any]) -> WorkerInfo:
    values = list(row)
    values[2] = tuple(_decode(values[2]))
    values[-1] = None if values[-1] is None else tuple(_decode(values[-1]))
    return WorkerInfo(*values)


def _credential(row: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(_CREDENTIAL, row, strict=True))
    return {**found, "about": _decode(found["about"])}
