"""Team tables in memory. Tested in tests/conformance/test_team.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from noetl.audit.chain import Chained, Head, with_references
from noetl.model.errors import Conflict
from noetl.ports import Audit, AuditEntry, Token, WorkerInfo
from noetl.ports.keychain import DAY_MS, SealedToken
from noetl.ports.log import OPEN
from noetl.ports.team import DataKey
from noetl.stores.common.batch import slot_columns
from noetl.stores.common.work_limits import count_by_limit
from noetl.stores.memory.tables import Row, Tables

_replace = msgspec.structs.replace


class MemoryTeam:
    """Server tables of a store in memory."""

    def __init__(self, tables: Tables | None = None) -> None:
        self.tables = tables or Tables()

    async def enlist(self, worker: WorkerInfo, act: Audit = None) -> None:
        self.tables.note([act])
        self.tables.workers[worker.worker_id] = worker

    async def seen(self, worker_id: str, now: int, active: int) -> str | None:
        known = self.tables.workers.get(worker_id)
        if known is None:
            return None
        self.tables.workers[worker_id] = _replace(known, seen_at=max(known.seen_at, now), active=active)
        return known.status

    async def set_status(self, worker_id: str, status: str, act: Audit = None) -> bool:
        known = self.tables.workers.get(worker_id)
        if known is not None:
            self.tables.note([act])
            self.tables.workers[worker_id] = _replace(known, status=status)
        return known is not None

    async def leave(self, worker_id: str, registered_at: int) -> bool:
        known = self.tables.workers.get(worker_id)
        if known is None or known.registered_at != registered_at:
            return False
        return await self.set_status(worker_id, "gone")

    async def strike_off(self, before: int) -> int:
        silent = [name for name, worker in self.tables.workers.items() if worker.seen_at < before]
        for name in silent:
            del self.tables.workers[name]
        return len(silent)

    async def discharge(self, worker_id: str, act: Audit = None) -> None:
        if self.tables.workers.pop(worker_id, None) is not None:
            self.tables.note([act])

    async def workers(self) -> list[WorkerInfo]:
        return [worker for _, worker in sorted(self.tables.workers.items())]

    async def held(self, worker_id: str) -> list[Mapping[str, Any]]:
        rows = [(row.epoch, work_id, row) for work_id, row in self.tables.queue.items() if row.state == "leased"]
        mine = sorted((epoch, work_id, row) for epoch, work_id, row in rows if row.worker == worker_id)
        return [{"work_id": work_id, "attempt": row.attempt, "until": row.until} for _, work_id, row in mine[:200]]

    async def depths(self) -> list[Mapping[str, Any]]:
        groups: dict[tuple[str, tuple[str, ...]], list[Row]] = {}
        for row in self.tables.queue.values():
            groups.setdefault((row.pool, tuple(sorted(row.requires))), []).append(row)
        return [_depth(pool, requires, groups[pool, requires]) for pool, requires in sorted(groups)]

    async def flows(self) -> list[Mapping[str, Any]]:
        groups: dict[tuple[str, int, str], list[Row]] = {}
        for row in self.tables.queue.values():
            if row.state == "queued":
                groups.setdefault((row.pool, -row.priority, row.flow), []).append(row)
        return [
            {
                "pool": pool,
                "priority": -priority,
                "flow": flow,
                "queued": len(rows),
                "oldest": min(row.created_at for row in rows),
            }
            for (pool, priority, flow), rows in sorted(groups.items())
        ]

    async def parked(self) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for row in map(msgspec.json.decode, self.tables.executions.values()):
            if row.get("parked") and row.get("status") in OPEN:
                found[row.get("path", "")] += row["parked"]
        return found

    async def limits(self) -> list[Mapping[str, Any]]:
        rows = [msgspec.json.decode(text) for text in self.tables.executions.values()]
        groups: dict[str, list[tuple[bool, int]]] = {}
        for row in rows:
            own, queued, above = slot_columns(row)
            for key in (own, above):
                if key is None:
                    continue
                groups.setdefault(key, []).append((queued, int(row.get("started_at", 0))))
        return [
            {
                "group": key,
                "running": sum(not queued for queued, _ in found),
                "waiting": sum(queued for queued, _ in found),
                "oldest": min((at for queued, at in found if queued), default=None),
            }
            for key, found in sorted(groups.items())
        ]

    async def work_limits(self) -> list[Mapping[str, Any]]:
        rows = self.tables.queue.values()
        return count_by_limit((row.limits, int(row.state == "queued"), int(row.state == "leased")) for row in rows)

    async def add_token(self, token: Token, act: Audit = None) -> None:
        if any(token.token_id == known.token_id or token.digest == known.digest for known in await self.tokens()):
            raise Conflict(f"the token {token.token_id}, or one with the same secret, exists already")
        self.tables.tokens[token.token_id] = token
        self.tables.note([act])

    async def token(self, digest: str) -> Token | None:
        return next((token for token in self.tables.tokens.values() if token.digest == digest), None)

    async def tokens(self) -> list[Token]:
        return sorted(self.tables.tokens.values(), key=lambda token: (token.created_at, token.token_id))

    async def valid_tokens(self, token_ids: Collection[str], now: int) -> set[str]:
        found = (self.tables.tokens[one] for one in token_ids if one in self.tables.tokens)
        return {
            token.token_id
            for token in found
            if token.revoked_at is None and (token.expires_at is None or token.expires_at > now)
        }

    async def revoke(self, token_id: str, now: int, act: Audit = None) -> bool:
        known = self.tables.tokens.get(token_id)
        if known is None or known.revoked_at is not None:
            return False
        self.tables.tokens[token_id] = _replace(known, revoked_at=now)
        self.tables.note([act])
        return True

    async def used(self, token_id: str, now: int) -> None:
        known = self.tables.tokens.get(token_id)
        if known is not None:
            self.tables.tokens[token_id] = _replace(known, used_at=max(known.used_at or 0, now))

    async def put_credential(
        self, name: str, kind: str, sealed: bytes, about: Mapping[str, Any], now: int, act: Audit = None
    ) -> int:
        known = self.tables.credentials.get(name, {"version": 0, "created_at": now})
        row = {"name": name, "kind": kind, "sealed": sealed, "about": msgspec.json.encode(about), "updated_at": now}
        self.tables.credentials[name] = {**known, **row, "version": known["version"] + 1}
        was = int(known["version"])
        self.tables.note([with_references(act, f"version {was}" if was else "", f"version {was + 1}")])
        return was + 1

    async def sealed_credential(self, name: str) -> Mapping[str, Any] | None:
        row = self.tables.credentials.get(name)
        return None if row is None else {**row, "about": msgspec.json.decode(row["about"])}

    async def credentials(self) -> list[Mapping[str, Any]]:
        rows = [await self.sealed_credential(name) or {} for name in sorted(self.tables.credentials)]
        return [{key: value for key, value in row.items() if key != "sealed"} for row in rows]

    async def known_credentials(self, names: Collection[str]) -> set[str]:
        return set(names) & self.tables.credentials.keys()

    async def delete_credential(self, name: str, act: Audit = None) -> bool:
        was = self.tables.credentials.pop(name, None)
        self.tables.note([] if was is None else [with_references(act, f"version {was['version']}")])
        return was is not None

    async def data_keys(self) -> list[DataKey]:
        return sorted(self.tables.data_keys.values(), key=lambda one: (-one.created_at, one.key_id))

    async def add_data_key(self, key: DataKey) -> None:
        self.tables.data_keys[key.key_id] = key

    async def rewrap_data_keys(self, wrapped: Mapping[str, tuple[bytes, bytes]], act: Audit = None) -> int:
        keys, count = self.tables.data_keys, 0
        for name, (old, new) in wrapped.items():
            if name in keys and keys[name].wrapped == old:
                keys[name] = _replace(keys[name], wrapped=new)
                count += 1
        self.tables.note([act])
        return count

    async def access_token(self, key: str) -> SealedToken | None:
        known = self.tables.access_tokens.get(key)
        return known[0] if known is not None else None

    async def claim_access_token(self, key: str, holder: str, version: int, now: int, until: int) -> bool:
        token, owner, held_until = self.tables.access_tokens.get(key, (SealedToken(b"", until, 0), "", 0))
        is_new = key not in self.tables.access_tokens
        if not is_new and (token.version != version or (owner not in ("", holder) and held_until > now)):
            return False
        self.tables.access_tokens[key] = (token, holder, until)
        return True

    async def keep_access_token(self, key: str, holder: str, sealed: bytes | None, expires_at: int, now: int) -> bool:
        kept = self.tables.access_tokens
        for old in [one for one, (token, _, until) in kept.items() if max(token.expires_at, until) < now - DAY_MS]:
            del kept[old]
        token, owner, until = kept.get(key, (SealedToken(b"", 0, 0), "", 0))
        if not owner or owner != holder:
            return False
        kept[key] = (token if sealed is None else SealedToken(sealed, expires_at, token.version + 1), "", until)
        return True

    async def keep_key(self, key: str, execution_id: str, now: int, since: int) -> str:
        return (await self.keep_keys({key: execution_id}, now, since))[0]

    async def keep_keys(self, kept: Mapping[str, str], now: int, since: int) -> list[str]:
        keys = self.tables.keys = {name: known for name, known in self.tables.keys.items() if known[1] >= since}
        return [keys.setdefault(key, (execution_id, now))[0] for key, execution_id in kept.items()]

    async def audit(self, entries: Sequence[AuditEntry]) -> None:
        self.tables.note(entries)

    async def audited(
        self, *, actor: str | None = None, entity: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        found = [
            entry
            for entry in (one.entry for one in reversed(self.tables.audit))
            if actor in (None, entry.actor)
            and entity in (None, entry.entity)
            and (before is None or entry.number < before)
        ]
        return found[:limit]

    async def link(self, most: int) -> int:  # noqa: ARG002  every entry is linked when it is written
        return 0

    async def chain(self, after: int, limit: int) -> list[Chained]:
        return [one for one in self.tables.audit if one.position is not None and one.position > after][:limit]

    async def unlinked(self, after: int, limit: int) -> list[Chained]:
        return [one for one in self.tables.audit if one.position is None and one.entry.number > after][:limit]

    async def audit_head(self) -> Head:
        return self.tables.audit_head


def _depth(pool: str, requires: tuple[str, ...], rows: list[Row]) -> Mapping[str, Any]:
    counts = {state: sum(row.state == state for row in rows) for state in ("queued", "leased", "dead")}
    oldest = min((row.created_at for row in rows if row.state == "queued"), default=None)
    return {"pool": pool, "requires": requires, **counts, "oldest": oldest}
