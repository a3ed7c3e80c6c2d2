"""Catalog in PostgreSQL. Tested in tests/conformance/test_catalog.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noetl.audit.chain import version_of, with_references
from noetl.ports import Audit
from noetl.stores.common.expected_version import require_expected
from noetl.stores.common.queries import queries
from noetl.stores.postgres.database import PostgresDatabase

_SQL = queries("postgres")


class PostgresCatalog:
    """Playbooks by path and version, and canonical trees by content hash."""

    def __init__(self, database: PostgresDatabase) -> None:
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
        async with self.database.transaction() as connection:
            last = await connection.fetchval(_SQL["lock_path"], path)  # concurrent registrations of the path wait
            found = await connection.fetchrow(_SQL["find_version"], path, last)
            if found is not None and (found["playbook"], found["content"]) == (playbook, content):
                return int(last)
            latest = await connection.fetchrow(_SQL["find_version"], path, None) if expected is not None else None
            require_expected(path, expected, int(latest["version"]) if latest is not None else 0)
            version = int(await connection.fetchval(_SQL["next_version"], path))
            await connection.execute(_SQL["put_playbook"], playbook, canonical)
            await connection.execute(_SQL["put_version"], path, version, playbook, content, now)
            was = "" if found is None else version_of(found["version"], found["playbook"])
            await self.database.note(connection, with_references(act, was, version_of(version, playbook)))
            return version

    async def canonical(self, playbook: str) -> bytes | None:
        found = await self.database.value("find_canonical", playbook)
        return None if found is None else bytes(found)

    async def canonicals(self, playbooks: Sequence[str]) -> dict[str, bytes]:
        rows = await self.database.rows("list_canonicals", list(playbooks)) if playbooks else []
        return {str(row["playbook"]): bytes(row["canonical"]) for row in rows}

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None:
        rows = await self.database.rows("find_version", path, version)
        return dict(rows[0]) if rows else None

    async def content_hash(self, path: str, version: int | None = None) -> str | None:
        found: str | None = await self.database.value("find_content_hash", path, version)
        return found

    async def entries(
        self, text: str | None, after: str | None, limit: int, within: Sequence[str] | None = None
    ) -> list[Mapping[str, Any]]:
        return [dict(row) for row in await self.database.rows("list_entries", text, after or "", limit, within)]

    async def versions(self, path: str) -> list[Mapping[str, Any]]:
        return [dict(row) for row in await self.database.rows("list_versions", path)]

    async def unregister(self, path: str, version: int | None = None, act: Audit = None) -> int:
        rows = await self.database.noted(
            act, "remove_versions", path, version, refer=lambda rows: (version_of(*max(map(tuple, rows))), "")
        )
        return len(rows)
