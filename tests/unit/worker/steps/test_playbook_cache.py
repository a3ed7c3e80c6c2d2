"""Steps are planned once, again with other settings, and apart for a replay."""

from __future__ import annotations

from typing import Any, cast

import pytest

from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned
from noetl.model.errors import NoetlError, StoreUnavailable
from noetl.model.work import WorkItem
from noetl.ports import Blobs, Children, ControlPlane
from noetl.tools import kinds
from noetl.worker.steps.playbook_cache import Playbooks
from noetl.worker.tool_context import WorkerResources
from tests.unit.worker.system import HEAD

pytestmark = pytest.mark.asyncio

TREE, NAME = pinned(
    normalize(
        parse(
            HEAD
            + """
executor: {spec: {retries: {plugin: {max_attempts: 2}}}}
workflow:
  - step: one
    spec: {durability: task}
    tool: {kind: noop, message: plain}
"""
        )
    )
)


class Server:
    """Server that refuses once, then returns the tree."""

    def __init__(self) -> None:
        self.asked = 0

    async def playbook(self, name: str) -> bytes:
        assert name == NAME
        self.asked += 1
        if self.asked == 1:
            raise StoreUnavailable("not now")
        return TREE


class Clock:
    def now(self) -> int:
        return 0

    async def sleep(self, seconds: float) -> None:
        pass


def work(step: str = "one", **more: Any) -> WorkItem:
    return WorkItem("7:one#1", "7", "one#1", step, 1, NAME, {}, **more)


def known(server: Server, defaults: dict[str, Any]) -> Playbooks:
    parts = (cast(ControlPlane, server), kinds(), kinds(), Clock(), cast(Children, None), cast(Blobs, None))
    return Playbooks(WorkerResources(*parts, lambda: None, defaults=defaults))


async def test_a_playbook_is_fetched_once_and_a_step_planned_once() -> None:
    server = Server()
    books = known(server, {"retries": {"plugin": {"base_ms": 5}}})
    assert books.cached(work()) is None
    first = await books.fetched(work())
    assert first.info.settings == {"retries": {"plugin": {"max_attempts": 2, "base_ms": 5}}, "durability": "task"}
    assert books.cached(work()) is first
    assert not first.evaluates
    assert (first.sink("one"), first.runtime["tools"].keys()) == (None, {"noop"})
    assert server.asked == 2
    with pytest.raises(NoetlError, match="no step `two`"):
        books.cached(work("two"))


async def test_other_settings_for_executions_are_seen_at_once() -> None:
    defaults: dict[str, Any] = {"timeouts": {"tool_default_ms": 10}}
    books = known(Server(), defaults)
    first = await books.fetched(work())
    assert first.info.plans[0].timeout == 10
    defaults.clear()  # another server, another layer
    defaults.update({"timeouts": {"tool_default_ms": 20}})
    again = books.cached(work())
    assert again is not None
    assert again.info.plans[0].timeout == 20
    assert books.cached(work()) is again


async def test_a_replay_has_a_plan_of_its_own() -> None:
    books = known(Server(), {})
    first = await books.fetched(work())
    other = books.cached(work(patch={"task": "one_task", "values": {"spec.message": "other"}}))
    assert other is not None
    assert (first.info.plans[0].fields, other.info.plans[0].fields) == ({"message": "plain"}, {"message": "other"})
    assert books.cached(work()) is first
