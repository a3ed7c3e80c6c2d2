"""PlanCache: compiled once per content hash, found by hash or by path and version."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.model.errors import InvalidInput
from noetl.model.messages import Start
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.control_plane import Store
from tests.unit.server.system import ONE_STEP, chain, register

pytestmark = pytest.mark.asyncio


async def test_a_plan_is_made_once_and_kept_while_there_is_room(store: Store) -> None:
    one, two = await register(store), await register(store, chain(2))
    plans = PlanCache(store, {"pool": "default"}, most=1)
    found = await plans.get(one)
    assert found.playbook_hash == one
    assert found.setting("pool") == "default"
    assert await plans.get(one) is found
    await plans.get(two)
    again = await plans.get(one)
    assert again is not found
    assert again.playbook == found.playbook


async def test_an_unknown_hash_is_told(store: Store) -> None:
    with pytest.raises(InvalidInput, match="content hash nothing"):
        await PlanCache(store).get("nothing")


@pytest.mark.parametrize(("version", "which"), [(None, 1), ("latest", 1), (1, 0), ("2", 1)])
async def test_a_start_names_a_hash_or_a_path_and_version(store: Store, version: Any, which: int) -> None:
    hashes = [await register(store), await register(store, chain(2))]
    plans = PlanCache(store)
    parent = {} if version is None else {"version": version}
    assert await plans.named(Start("m", "tests/test", "", parent=parent)) == hashes[which]
    assert await plans.named(Start("m", "tests/test", "given", parent=parent)) == "given"


@pytest.mark.parametrize(
    ("path", "version"), [("nowhere", None), ("tests/test", 2), ("tests/test", "odd"), ("tests/test", [])]
)
async def test_what_the_catalog_has_not_is_named(store: Store, path: str, version: Any) -> None:
    await register(store, ONE_STEP)
    with pytest.raises(InvalidInput, match=path):
        await PlanCache(store).named(Start("m", path, "", parent={"version": version} if version is not None else None))
