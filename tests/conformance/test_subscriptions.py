"""Every store takes in messages of subscriptions with what they start, each once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noetl.model.commit import Intake
from noetl.model.errors import Passed
from noetl.model.letters import DeadLetter, LetterChange
from noetl.model.messages import Start
from noetl.ports import Commit, Receipt
from noetl.ports.letters import LetterSelection
from noetl.ports.triggers import Progress, StoredTrigger
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import RealClock, register

pytestmark = pytest.mark.asyncio
PLAYBOOK = (
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: a, path: a}\nworkload: {n: 0}\n"
    "workflow:\n  - {step: one, tool: {kind: noop}}\n"
)


async def commit(store: Store, *commits: Commit) -> list[str]:
    found = store.commit(commits)
    receipt = found if isinstance(found, Receipt) else await found
    return [one.status for one in receipt.commits]


def taken(execution_id: str, revision: int, key: int, message_id: str = "", **more: Any) -> Commit:
    intake = Intake("s", {"key": key}, revision, message_id, message_id or f"m{key}", at=10 + key, **more)
    return Commit(execution_id, 0, intake=intake)


async def test_a_position_moves_on_from_its_revision_only(place: Place) -> None:
    store = place.open()
    subscriptions = place.subscriptions(store)
    assert await subscriptions.progress("s") == Progress()
    assert await commit(store, taken("1", 0, 5)) == ["applied"]
    assert await commit(store, taken("2", 0, 9)) == ["passed"]
    assert await commit(store, taken("3", 1, 6), taken("4", 2, 7), taken("5", 2, 8)) == ["applied", "applied", "passed"]
    assert await subscriptions.progress("s") == Progress({"key": 7}, 3, 3, 0, "m7", 17)
    assert await store.execution("1") is None


async def test_a_message_is_taken_in_once(place: Place) -> None:
    store = place.open()
    subscriptions = place.subscriptions(store)
    assert await commit(store, taken("1", 0, 1, "x"), taken("2", 1, 1, "x")) == ["applied", "passed"]
    assert await commit(store, taken("2", 1, 1, "x"), taken("3", 1, 2, "y")) == ["passed", "applied"]
    assert await subscriptions.known("s", ["x", "z", "y"], 20) == {"x", "y"}
    assert await subscriptions.known("other", ["x"], 20) == set()
    assert (await subscriptions.progress("s")).received == 2


async def test_two_servers_take_in_each_message_once(place: Place) -> None:
    stores = [place.open() for _ in range(4)]
    for revision in range(3):
        name = str(revision)
        found = await asyncio.gather(
            *(commit(one, taken(f"1{name}{at}", revision, 1, name)) for at, one in enumerate(stores))
        )
        assert sorted(found) == [["applied"], ["passed"], ["passed"], ["passed"]]
    assert (await place.subscriptions(stores[0]).progress("s")).revision == 3


async def test_a_start_and_its_position_are_one_transaction(place: Place) -> None:
    store = place.open()
    playbook = await register(store, PLAYBOOK, "a")
    async with LocalControlPlane(store, RealClock()) as control:
        intake = Intake("s", {"key": 1}, 0, "x", "x", at=5)
        await control.submit("11", Start("subscription:s:x", "a", playbook, {"n": 1}), None, intake)
        with pytest.raises(Passed):
            await control.submit("12", Start("subscription:s:x", "a", playbook, {"n": 1}), None, intake)
    assert await store.read("12") == []
    assert [event.payload["payload"] for event in await store.read("11", 0, 1)] == [{"n": 1}]
    assert (await place.subscriptions(store).progress("s")).position == {"key": 1}


async def test_a_poisoned_message_is_a_dead_letter_with_its_position(place: Place) -> None:
    store = place.open()
    letter = DeadLetter(
        "7-x",
        "7",
        "s",
        "message:x",
        "poison_message",
        1,
        "no",
        "f",
        1,
        2,
        "a",
        tool_kind="subscription",
        payload={"n": 1},
    )
    change = LetterChange("7-x", "pending", 2, letter)
    intake = Intake("s", {"key": 1}, 0, "x", "x", is_poisoned=True, at=5)
    assert await commit(store, Commit("7", 0, letters=(change,), intake=intake)) == ["applied"]
    assert await commit(store, Commit("8", 0, letters=(change,), intake=intake)) == ["passed"]
    assert await store.letters(LetterSelection(tool_kind="subscription")) == [letter]
    assert await place.subscriptions(store).progress("s") == Progress({"key": 1}, 1, 0, 1, "x", 5)
    await place.derived(store).empty(0)
    assert await store.letter("7-x") == letter, "a rebuild keeps what is not in the log"
    closed = Commit("7", 0, letters=(LetterChange("7-x", "discarded", 9, by="ann", note="old"),))
    assert await commit(store, closed) == ["applied"]
    found = await store.letter("7-x")
    assert found is not None
    assert (found.status, found.closed_at, found.note) == ("discarded", 9, "old")


async def test_a_status_leaves_the_position_and_messages_are_forgotten(place: Place) -> None:
    store = place.open()
    subscriptions, day = place.subscriptions(store), 86_400_000
    await subscriptions.note("s", {"error": "é"})
    await commit(store, taken("1", 0, 1, "x"), taken("2", 1, 2, "y"))
    await subscriptions.note("s", {"lag": 3})
    assert await subscriptions.progress("s") == Progress({"key": 2}, 2, 2, 0, "y", 12, {"lag": 3})
    assert await subscriptions.known("s", ["x"], day) == {"x"}
    assert await subscriptions.forget("s", day) == 1
    assert await subscriptions.known("s", ["x", "y"], day) == {"x"}


async def test_states_go_with_their_subscriptions(place: Place) -> None:
    store = place.open()
    subscriptions, triggers = place.subscriptions(store), place.triggers(store)
    await triggers.add(StoredTrigger("subscription", "a@b", "p"))
    await triggers.add(StoredTrigger("webhook", "gone", "p"))
    kept, gone = f"a@b@{'0' * 32}", f"gone@{'0' * 32}"
    for name in (kept, gone):
        await commit(store, Commit("1", 0, intake=Intake(name, {"key": 1}, 0, "x", "x", at=5)))
    assert await subscriptions.prune() == 1
    assert (await subscriptions.progress(kept)).revision == 1
    assert await subscriptions.progress(gone) == Progress()
    assert await subscriptions.known(kept, ["x"], 5) == {"x"}
    assert await subscriptions.known(gone, ["x"], 5) == set()
    assert await subscriptions.prune() == 0
