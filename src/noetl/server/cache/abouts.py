"""Descriptions of playbooks by content hash, for lists and searches.

A content hash never changes its meaning, so what was read once is kept. Tested in tests/server/api/test_catalog.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from noetl.ports import Catalog

_KEPT: Final = 20_000
_PAGE: Final = 200  # entries read at once


class About(msgspec.Struct, frozen=True):
    """What `metadata` of a playbook says, as text."""

    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}

    def holds(self, text: str) -> bool:
        """Return whether a text is in the name, description, a tag or a label; any case."""
        labels = (f"{key}={value}" for key, value in self.labels.items())
        return any(text in one.lower() for one in (self.name, self.description, *self.tags, *labels))

    def has_label(self, label: str) -> bool:
        """Return whether a label is there: `key`, or `key=value`."""
        key, is_pair, value = label.partition("=")
        return key in self.labels and (not is_pair or self.labels[key] == value)


class _Head(msgspec.Struct):
    metadata: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Head).decode


class Abouts:
    """Descriptions that were read, by content hash; the oldest are dropped."""

    def __init__(self) -> None:
        self._known: dict[str, About] = {}

    async def entries(
        self,
        catalog: Catalog,
        after: str | None,
        limit: int,
        within: Sequence[str] | None,
        *,
        text: str | None = None,
        tag: str | None = None,
        label: str | None = None,
    ) -> list[tuple[Mapping[str, Any], About]]:
        """List entries of the catalog in order, each with its description."""
        found: list[tuple[Mapping[str, Any], About]] = []
        wanted = None if text is None else text.lower()
        while len(found) < limit:
            rows = await catalog.entries(None, after, _PAGE, within)
            abouts = await self._read(catalog, [str(row["playbook"]) for row in rows])
            for row in rows:
                about = abouts[str(row["playbook"])]
                is_found = wanted is None or wanted in str(row["path"]).lower() or about.holds(wanted)
                if is_found and (tag is None or tag in about.tags) and (label is None or about.has_label(label)):
                    found.append((row, about))
            if len(rows) < _PAGE:
                break
            after = str(rows[-1]["path"])
        return found[:limit]

    async def _read(self, catalog: Catalog, playbooks: Iterable[str]) -> Mapping[str, About]:
        wanted = dict.fromkeys(playbooks)
        found = {name: self._known[name] for name in wanted if name in self._known}
        trees = await catalog.canonicals([name for name in wanted if name not in found])
        found |= {name: _about(tree) for name, tree in trees.items()}
        self._known |= found
        for name in list(self._known)[: max(len(self._known) - _KEPT, 0)]:
            del self._known[name]
        return {name: found.get(name, About()) for name in wanted}


def _about(tree: bytes) -> About:
    data = _decode(tree).metadata
    tags, labels = data.get("tags"), data.get("labels")
    return About(
        str(data.get("name", "")),
        str(data.get("description") or ""),
        tuple(map(str, tags)) if isinstance(tags, list) else (),
        {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {},
    )
