"""Ends of executions start others on every store: once, after crashes, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.model.errors import InvalidInput, StoreUnavailable
from noetl.model.messages import AnyMessage, Start
from noetl.ports import Audit, Selection
from noetl.ports.triggers import StoredTrigger
from noetl.server.background.reactions.ended_triggers import EndedTriggers
from noetl.server.control_plane import LocalControlPlane
from noetl.server.operations.triggers import apply, skip_ends
from noetl.triggers.ended import MOST_CHAIN
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import RealClock, ended, register, workers

pytestmark = pytest.mark.asyncio
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{name: {0}, path: {0}}}\nworkflow:\n"
GOOD = "  - {step: one, tool: {kind: noop, result: 5}}\n"
BAD = (
    "  - {step: one, tool: {kind: noop}, next: {arcs: [{step: two, when: '{{ 1 // 0 }}'}]}}\n"
    "  - {step: two, tool: {kind: noop}}\n"
)


class Line:
    """Triggers of ends on a store, and what the test asks of both."""

    def __init__(self, place: Place, store: Store, control: LocalControlPlane) -> None:
        self.place, self.store, self.control = place, store, control
        self.triggers, self.team = place.triggers(store), place.team(store)
        self.hashes: dict[str, str] = {}

    def reader(self, holder: str = "a", submit: Any = None) -> EndedTriggers:
        async def render(data: Any, scope: Mapping[str, Any]) -> Any:
            if "bad" in data:
                raise InvalidInput("no such name")
            return {"which": scope["execution"]["execution_id"]}

        chosen, derived = submit or self.control.submit, self.place.derived(self.store)
        parts = (self.triggers, self.store, self.team, derived, chosen, render, RealClock())
        return EndedTriggers(*parts, holder=holder)

    async def add(self, name: str, watched: str, starts: str, content: str = GOOD, **more: Any) -> None:
        self.hashes[starts] = await register(self.store, HEAD.format(starts) + content, starts)
        spec = {"path": watched, **more}
        await self.triggers.add(StoredTrigger("ended", name, starts, spec))

    async def start(self, path: str, content: str = GOOD, number: str = "1", **more: Any) -> None:
        playbook = await register(self.store, HEAD.format(path) + content, path)
        await self.control.submit(number, Start(f"start-{number}", path, playbook, {}, **more), None)
        await self.finish()

    async def finish(self) -> None:
        """Run every execution to its end."""
        async with workers(self.control):
            for row in await self.store.executions(Selection()):
                await ended(self.control, self.store, str(row["execution_id"]))

    async def started(self) -> list[Mapping[str, Any]]:
        """List executions that triggers started, oldest first, with their payloads."""
        rows = reversed(await self.store.executions(Selection(limit=100)))
        found = [row for row in rows if any(str(tag).startswith("ended:") for tag in row.get("tags") or ())]
        firsts = [(await self.store.read(str(row["execution_id"]), 0, 1))[0] for row in found]
        return [{**row, "payload": first.payload["payload"]} for row, first in zip(found, firsts, strict=True)]


@asynccontextmanager
async def line(place: Place) -> AsyncIterator[Line]:
    store = place.open()
    async with LocalControlPlane(store, RealClock()) as control:
        yield Line(place, store, control)


async def test_an_end_starts_what_matches_it_once(place: Place) -> None:
    async with line(place) as system:
        await system.add("mail", "etl/*", "mail", status=["failed"])
        await system.add("next", "etl/load", "next", payload={"which": "{{ execution.execution_id }}"})
        await system.start("etl/load")
        await system.start("etl/clean", BAD, "2")
        await system.start("other", BAD, "3")
        for _ in range(3):
            await system.reader().look()
        first, second = sorted(await system.started(), key=lambda row: str(row["path"]))
        assert first["path"] == "mail"
        facts = first["payload"]["execution"]
        assert (facts["execution_id"], facts["path"], facts["status"]) == ("2", "etl/clean", "failed")
        assert facts["error"]["message"]
        assert (second["path"], second["payload"]) == ("next", {"which": "1"})
        assert second["tags"] == ["ended:next", "chain:1"]
        [entry] = await system.team.audited(entity=str(second["execution_id"]))
        assert (entry.actor, entry.detail["ended"]) == ("ended:next", "1")


async def test_a_crash_before_the_position_is_kept_starts_nothing_twice(place: Place) -> None:
    async with line(place) as system:
        await system.add("next", "a", "next")
        await system.start("a")

        async def crash(execution_id: str, message: AnyMessage, act: Audit) -> Mapping[str, Any]:
            await system.control.submit(execution_id, message, act)
            raise StoreUnavailable("the answer was lost")

        with pytest.raises(StoreUnavailable):
            await system.reader(submit=crash).look()
        assert len(await system.started()) == 1
        assert await system.triggers.position("ended") == ({}, 0)
        await system.reader().look()
        assert len(await system.started()) == 1
        assert (await system.triggers.position("ended"))[1] == 1


async def test_a_crash_before_the_start_loses_nothing(place: Place) -> None:
    async with line(place) as system:
        await system.add("next", "a", "next")
        await system.start("a")

        async def crash(*_: Any) -> Mapping[str, Any]:
            raise StoreUnavailable("no store")

        with pytest.raises(StoreUnavailable):
            await system.reader(submit=crash).look()
        assert await system.started() == []
        await system.reader().look()
        assert len(await system.started()) == 1


async def test_many_servers_start_one_execution(place: Place) -> None:
    async with line(place) as system:
        await system.add("next", "a", "next")
        await system.start("a")
        await asyncio.gather(*(system.reader(name).look() for name in "abc"))
        await system.reader("a").look()
        assert len(await system.started()) == 1


async def test_playbooks_that_start_each_other_stop(place: Place) -> None:
    async with line(place) as system:
        await system.add("there", "ping", "pong")
        await system.add("back", "pong", "ping")
        await system.start("ping")
        for _ in range(MOST_CHAIN + 3):
            await system.reader().look()
            await system.finish()
        assert len(await system.started()) == MOST_CHAIN
        entries = await system.team.audited(limit=100)
        [refused] = [one for one in entries if one.action == "ended.refuse"]
        assert "started each other" in refused.detail["reason"]


async def test_a_playbook_never_starts_itself(place: Place) -> None:
    async with line(place) as system:
        await system.add("self", "*", "a")
        await system.start("a")
        await system.reader().look()
        assert await system.started() == []


async def test_what_cannot_start_is_audited_and_stops_nothing(place: Place) -> None:
    async with line(place) as system:
        await system.add("broken", "a", "next", payload={"bad": "{{ execution.none }}"})
        await system.triggers.add(StoredTrigger("ended", "gone", "no/such", {"path": "a"}))
        await system.add("works", "a", "next")
        await system.start("a")
        await system.reader().look()
        assert [row["tags"][0] for row in await system.started()] == ["ended:works"]
        entries = await system.team.audited(limit=100)
        reasons = {one.entity: one.detail["reason"] for one in entries if one.action == "ended.refuse"}
        assert reasons == {"broken": "no such name", "gone": "The catalog has no `no/such`."}


async def test_ends_of_a_restored_store_start_nothing(place: Place) -> None:
    async with line(place) as system:
        await system.add("next", "a", "next")
        await system.start("a")
        await skip_ends(system.triggers, system.store)
        await system.reader().look()
        assert await system.started() == []
        await system.start("a", number="2")
        await system.reader().look()
        assert len(await system.started()) == 1


async def test_ends_before_a_trigger_start_nothing(place: Place) -> None:
    async with line(place) as system:
        await system.start("a")
        reader = system.reader()
        await reader.look()
        assert (await system.triggers.position("ended"))[0] == dict(await system.store.writers())
        await system.add("next", "a", "next")
        await reader.look()
        assert await system.started() == []
        await system.triggers.add(StoredTrigger("ended", "later", "next", {"path": "a"}, created_at=2**50))
        await system.start("a", number="2")
        await reader.look()
        assert [row["tags"][0] for row in await system.started()] == ["ended:next"]


async def test_what_ends_during_a_pause_starts_nothing(place: Place) -> None:
    async with line(place) as system:
        await system.add("next", "a", "next")

        async def pause(paused: bool) -> None:
            assert await apply(system.triggers, "ended", "next", lambda old: replace(old, paused=paused)) is not None

        await pause(True)
        await system.start("a")
        await system.reader().look()
        await pause(False)
        await system.start("a", number="2")
        await system.reader().look()
        [row] = await system.started()
        assert row["payload"]["execution"]["execution_id"] == "2"


async def test_a_trigger_that_cannot_be_read_does_not_stop_the_others(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with line(place) as system:
        await system.add("broken", "a", "never", tags=[5])
        await system.add("next", "a", "next")
        await system.start("a")
        reader = system.reader()
        for _ in range(3):
            await reader.look()
        assert [row["path"] for row in await system.started()] == ["next"]
        assert len([one for one in caplog.records if "broken" in one.getMessage()]) == 1
