"""Plans by content hash. Tested in tests/unit/server/cache/test_plan_cache.py."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from msgspec import json

from noetl.dsl.analysis.needed_credentials import Need, needed_credentials
from noetl.dsl.checking.requirements import CannotRun, lacking
from noetl.dsl.checking.uses import Unavailable
from noetl.dsl.tree.pin import unpinned
from noetl.engine.plan.plan import Plan, plan
from noetl.engine.state.execution import Execution
from noetl.model.errors import InvalidInput
from noetl.model.letters import NO_LETTERS
from noetl.model.messages import AnyMessage, Start
from noetl.ports import Catalog


class PlanCache:
    """Plans by content hash; the least recently used is evicted first."""

    def __init__(
        self,
        catalog: Catalog,
        defaults: Mapping[str, Any] | None = None,
        most: int = 128,
        most_bytes: int = 16_000_000,
        cannot_run: CannotRun | None = None,
        unavailable: Unavailable | None = None,
    ) -> None:
        self._catalog = catalog
        self._cannot_run = cannot_run
        self._unavailable = unavailable
        self._defaults = defaults or {}
        self._most = most
        self._most_bytes = most_bytes  # of canonical playbooks; a plan takes about ten times as much
        self._sizes: dict[str, int] = {}
        self._needs: dict[str, tuple[Need, ...]] = {}
        self._plans: OrderedDict[str, Plan] = OrderedDict()

    @property
    def keeps_letters(self) -> bool:
        """Return whether dead letters are kept."""
        return NO_LETTERS not in self._defaults

    def cached(self, playbook: str) -> Plan | None:
        """Return a cached plan."""
        return self._plans.get(playbook)

    async def get(self, playbook: str) -> Plan:
        """Return the plan of a pinned playbook."""
        found = self._plans.get(playbook)
        if found is None:
            data = await self._catalog.canonical(playbook)
            if data is None:
                raise unknown_playbook(playbook)
            tree = unpinned(data)
            lacks = lacking(tree, self._cannot_run, self._unavailable)
            found = self._plans[playbook] = plan(tree, playbook, self._defaults, lacks)
            self._sizes[playbook] = len(json.encode(data))
            self._needs[playbook] = needed_credentials(data)
            self._evict()
        self._plans.move_to_end(playbook)
        return found

    async def needs(self, playbook: str) -> tuple[Need, ...]:
        """Return the credentials that a pinned playbook surely needs."""
        await self.get(playbook)
        return self._needs[playbook]

    def _evict(self) -> None:
        """Evict plans until the bounds hold; the newest stays."""
        while len(self._plans) > 1 and (len(self._plans) > self._most or sum(self._sizes.values()) > self._most_bytes):
            old, _ = self._plans.popitem(last=False)
            del self._sizes[old], self._needs[old]

    async def source(self, message: AnyMessage, state: Execution | None = None) -> tuple[str, bytes, Mapping[str, Any]]:
        """Return what a plan is made of: content hash, canonical tree, defaults."""
        if isinstance(message, Start) and (state is None or not state.seq):
            playbook = await self.named(message)
        else:
            playbook = state.playbook if state is not None else ""
        data = await self._catalog.canonical(playbook)
        if data is None:
            raise unknown_playbook(playbook)
        return playbook, data, self._defaults

    async def named(self, start: Start) -> str:
        """Return the content hash of a start: its own, or that of its path and version."""
        if start.playbook:
            return start.playbook
        version = (start.parent or {}).get("version")
        found = await self._catalog.content_hash(start.path, _number(version))
        if found is None:
            wanted = f"`{start.path}`" if version is None else f"version {version} of `{start.path}`"
            raise InvalidInput(f"the catalog has no playbook {wanted}; register it, or check `path` and `version`")
        return found


def unknown_playbook(playbook: str) -> InvalidInput:
    """Return the error for a content hash that names no playbook."""
    return InvalidInput(f"there is no playbook with the content hash {playbook or '(none)'} in this store")


def _number(version: Any) -> int | None:
    try:
        return None if version is None or version == "latest" else int(version)
    except (TypeError, ValueError):
        return 0  # no version is called so
