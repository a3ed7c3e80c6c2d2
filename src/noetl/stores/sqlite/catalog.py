"""Catalog in a SQLite file. Tested in tests/conformance/test_catalog.py."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from noetl.audit.chain import version_of, with_references
from noetl.ports import Audit
from noetl.stores.common.expected_version import require_expected
from noetl.stores.common.queries import queries
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.rows import namespaces, write_audit

_SQL = queries("sqlite")
_VERSION = ("path", "version", "playbook", "registered_at")


class SqliteCatalog:
    """Playbooks by path and version, and canonical trees by content hash."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def register(
        self,
        path: str,
        content: bytes,
        canonical: bytes,
        playbook: str,
        now: int,
        act: Audit = None,
        expected: int | None = None,
    ) -> int:
        def job(connection: sqlite3.Connection) -> int:
            last = connection.execute(_SQL["last_version"], (path,)).fetchone()
            if last is not None and (last[1], last[2], last[3]) == (playbook, content, 0):
                return int(last[0])
            latest = connection.execute(_SQL["find_version"], (path, None)).fetchone()
            require_expected(path, expected, int(latest[1]) if latest is not None else 0)
            version = 1 if last is None else int(last[0]) + 1
            connection.execute(_SQL["put_playbook"], (playbook, canonical))
            connection.execute(_SQL["put_version"], (path, version, playbook, content, now))
            was = "" if last is None or last[3] else version_of(last[0], last[1])
            write_audit(connection, [with_references(act, was, version_of(version, playbook))])
            return version

        return await self.database.write(job)

    async def canonical(self, playbook: str) -> bytes | None:
        rows = await self._rows("find_canonical", playbook)
        return bytes(rows[0][0]) if rows else None

    async def canonicals(self, playbooks: Sequence[str]) -> dict[str, bytes]:
        rows = await self._rows("list_canonicals", json.dumps(list(playbooks))) if playbooks else []
        return {str(name): bytes(tree) for name, tree in rows}

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None:
        rows = await self._rows("find_version", path, version)
        names = ("path", "version", "playbook", "content", "registered_at")
        return dict(zip(names, rows[0], strict=True)) if rows else None

    async def content_hash(self, path: str, version: int | None = None) -> str | None:
        rows = await self._rows("find_content_hash", path, version)
        return str(rows[0][0]) if rows else None

    async def entries(
        self, text: str | None, after: str | None, limit: int, within: Sequence[str] | None = None
    ) -> list[Mapping[str, Any]]:
        rows = await self._rows("list_entries", text, after or "", limit, namespaces(within))
        return [dict(zip((*_VERSION, "versions"), row, strict=True)) for row in rows]

    async def versions(self, path: str) -> list[Mapping[str, Any]]:
        return [dict(zip(_VERSION, row, strict=True)) for row in await self._rows("list_versions", path)]

    async def unregister(self, path: str, version: int | None = None, act: Audit = None) -> int:
        def job(connection: sqlite3.Connection) -> int:
            last = connection.execute(_SQL["find_version"], (path, version)).fetchone()
            removed = connection.execute(_SQL["withdraw"], (path, version)).rowcount
            write_audit(connection, [] if last is None else [with_references(act, version_of(last[1], last[2]))])
            return removed

        return await self.database.write(job)

    async def _rows(self, name: str, *values: Any) -> list[Any]:
        run = self.database.run if name.startswith("list_") else self.database.read
        return await run(lambda connection: connection.execute(_SQL[name], values).fetchall())

    async def _write(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            await self.database.write(lambda connection: connection.executemany(_SQL[name], rows))
