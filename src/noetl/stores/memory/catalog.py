"""Catalog in memory. Tested in tests/conformance/test_catalog.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noetl.audit.chain import version_of, with_references
from noetl.ports import Audit
from noetl.stores.common.expected_version import require_expected
from noetl.stores.memory.tables import Tables


class MemoryCatalog:
    """Playbooks by path and version, and canonical trees by content hash."""

    def __init__(self, tables: Tables | None = None) -> None:
        self.tables = tables or Tables()
        self._own = 0

    def _count(self) -> None:
        self.tables.commits += 1
        self._own += 1

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
        versions = self.tables.catalog.setdefault(path, [])
        last = versions[-1] if versions else None
        if last is not None and not last["withdrawn"] and (last["playbook"], last["content"]) == (playbook, content):
            return len(versions)
        offered = self._offered(path)
        require_expected(path, expected, offered[-1]["version"] if offered else 0)
        self.tables.canonical.setdefault(playbook, canonical)
        row = {"path": path, "version": len(versions) + 1, "playbook": playbook, "content": content}
        versions.append({**row, "registered_at": now, "withdrawn": False})
        was = "" if last is None or last["withdrawn"] else version_of(last["version"], last["playbook"])
        self.tables.note([with_references(act, was, version_of(len(versions), playbook))])
        self._count()
        return len(versions)

    async def canonical(self, playbook: str) -> bytes | None:
        return self.tables.canonical.get(playbook)

    async def canonicals(self, playbooks: Sequence[str]) -> dict[str, bytes]:
        return {name: self.tables.canonical[name] for name in playbooks if name in self.tables.canonical}

    async def find(self, path: str, version: int | None = None) -> Mapping[str, Any] | None:
        found = [row for row in self._offered(path) if version in (None, row["version"])]
        return _without(found[-1], "withdrawn") if found else None

    async def content_hash(self, path: str, version: int | None = None) -> str | None:
        found = await self.find(path, version)
        return None if found is None else str(found["playbook"])

    async def entries(
        self, text: str | None, after: str | None, limit: int, within: Sequence[str] | None = None
    ) -> list[Mapping[str, Any]]:
        paths = [path for path in sorted(self.tables.catalog) if path > (after or "")]
        paths = [path for path in paths if within is None or path.startswith(tuple(within))]
        chosen = [path for path in paths if text is None or text.lower() in path.lower()]
        found = [rows for rows in map(self._offered, chosen) if rows][:limit]
        return [{**_without(rows[-1], "withdrawn", "content"), "versions": len(rows)} for rows in found]

    async def versions(self, path: str) -> list[Mapping[str, Any]]:
        return [_without(row, "withdrawn", "content") for row in reversed(self._offered(path))]

    async def unregister(self, path: str, version: int | None = None, act: Audit = None) -> int:
        found = [row for row in self._offered(path) if version in (None, row["version"])]
        for row in found:
            row |= {"withdrawn": True, "content": b""}
        if found:
            self.tables.note([with_references(act, version_of(found[-1]["version"], found[-1]["playbook"]))])
        self._count()
        return len(found)

    def _offered(self, path: str) -> list[dict[str, Any]]:
        return [row for row in self.tables.catalog.get(path, []) if not row["withdrawn"]]


def _without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
