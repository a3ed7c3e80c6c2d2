"""Every event log: guarded appends, atomic batches, snapshots, execution rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.rules.shape.long_name import MOST
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import checksum
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.ports import Commit, Selection
from noetl.ports.log import Recent, Timing
from noetl.ports.replay import Replay
from noetl.stores.memory.store import MemoryStore
from noetl.stores.sqlite.store import SqliteStore
from tests.conformance.commits import commit, event, put, signal, snapshot_of, work
from tests.conformance.conftest import Place, Store

pytestmark = pytest.mark.asyncio
ODD = {
    "text": 'öäü "quoted" \u2028 \x00 😀',
    "big": 2**80,
    "small": -(2**63),
    "real": 0.1,
    "none": None,
    "deep": {"list": [1, [2, {"x": True}]]},
    "": "",
}


async def statuses(store: Store, *commits: Commit) -> list[str]:
    return [done.status for done in (await store.commit(commits)).commits]


async def test_events_come_back_as_they_went_in(store: Store) -> None:
    full = Event(
        "id", "1", 1, "step.done", 5, "worker", "step", "s", "p", "s#1", "t#1", 3, 2, "ok", 1.5, ODD, 1
    )  # every field filled
    await store.commit([Commit("1", 0, (full,))])
    assert await store.read("1") == [full]


async def test_reading_starts_after_a_seq_and_stops_at_a_limit(store: Store) -> None:
    await store.commit([commit(count=5)])
    assert [found.seq for found in await store.read("1", after=2)] == [3, 4, 5]
    assert [found.seq for found in await store.read("1", after=1, limit=2)] == [2, 3]
    assert await store.read("1", after=5) == []
    assert await store.read("2") == []


async def test_a_commit_of_many_events_is_read_in_pages(store: Store) -> None:
    done = await statuses(store, commit(count=3), commit(at=3, count=1_300, message="m"), commit(at=1_303))
    assert done == ["applied"] * 3
    pages, after = [], 0
    while page := await store.read("1", after, 500):
        pages.append([found.seq for found in page])
        after = page[-1].seq
    assert pages == [list(range(1, 501)), list(range(501, 1001)), list(range(1001, 1305))]
    assert [found.seq for found in await store.read("1", 1_302)] == [1_303, 1_304]
    assert [found.seq for found in await store.read("1")] == list(range(1, 1305))
    assert await statuses(store, commit(at=1_304, count=1_300, message="m")) == ["duplicate"]
    fed = await store.feed({}, 2_000)
    assert [one.event for one in fed] == await store.read("1")
    assert [one.writer_seq for one in fed] == list(range(1, 1305))
    assert await store.feed({fed[0].writer_id: 600}, 10) == fed[600:610]


async def test_a_log_is_folded_page_by_page_as_it_is_whole(store: Store) -> None:
    await store.commit([commit(count=300), commit(at=300, count=1)])
    whole = fold("1", await store.read("1"))
    for page in (1, 7, 100, 300, 301, 302, 5_000):
        replay = Replay(store, "1", page)
        assert ((await replay.go(0)).seq, replay.last) == (0, None)
        assert checksum(await replay.go(150)) == checksum(fold("1", await store.read("1", limit=150)))
        assert checksum(await replay.go()) == checksum(whole)
        assert replay.last == "ctx.patched"
        assert (await replay.go(301)).seq == 301
    for nowhere in (302, -1):
        with pytest.raises(InvalidInput, match=f"no event {nowhere}: the log goes from 1 to 301"):
            await Replay(store, "1", 50).go(nowhere)
    assert (await Replay(store, "2").go()).seq == 0


async def test_a_commit_on_another_seq_is_stale_and_changes_nothing(store: Store) -> None:
    await store.commit([commit(count=2)])
    done = (await store.commit([commit(at=1, work=(work("late"),), timers=(("t", 1),), message="m")])).commits
    assert [(found.status, found.last_seq) for found in done] == [("stale", 2)]
    assert len(await store.read("1")) == 2
    assert await store.claim("w", [""], 5, 10, 20) == []
    assert await store.due(10, 10) == []
    assert await statuses(store, commit(at=7)) == ["stale"]


async def test_commits_of_one_batch_build_on_each_other(store: Store) -> None:
    assert await statuses(store, commit(), commit(at=1, count=2), commit("2"), commit(at=3)) == ["applied"] * 4
    assert [found.seq for found in await store.read("1")] == [1, 2, 3, 4]


async def test_one_commit_that_does_not_apply_leaves_the_others_alone(store: Store) -> None:
    assert await statuses(store, commit(), commit(at=9), commit("2")) == ["applied", "stale", "applied"]
    row = await store.execution("2")
    assert row is not None
    assert row["last_seq"] == 1


async def test_what_builds_on_a_refused_commit_is_refused(place: Place) -> None:
    """Another writer's events took the numbers that the refused ones would have had."""
    one, two = place.open(), place.open()
    assert await statuses(one, commit(count=2, message="theirs")) == ["applied"]
    batch = [commit(count=2, message="mine"), commit(at=2, message="next", work=(work("wrong"),)), commit("2")]
    assert await statuses(two, *batch) == ["stale", "stale", "applied"]
    assert len(await one.read("1")) == 2
    assert await one.claim("w", [""], 5, 10, 20) == []


async def test_a_decision_without_events_is_still_checked(store: Store) -> None:
    await store.commit([commit()])
    assert await statuses(store, Commit("1", 1, ()), Commit("1", 0, ())) == ["applied", "stale"]
    assert await statuses(store, Commit("unknown", 0, ())) == ["applied"]
    assert await store.execution("unknown") is None


async def test_a_message_applied_twice_is_noticed(store: Store) -> None:
    await store.commit([commit(message="m")])
    assert await statuses(store, commit(at=1, message="m", timers=(("t", 1),))) == ["duplicate"]
    assert await store.due(10, 10) == []


async def test_a_message_applied_twice_in_one_batch_is_noticed(store: Store) -> None:
    assert await statuses(store, commit(message="m"), commit(at=1, message="m")) == ["applied", "duplicate"]
    assert len(await store.read("1")) == 1


async def test_the_same_message_may_reach_two_executions(store: Store) -> None:
    assert await statuses(store, commit("1", message="m"), commit("2", message="m")) == ["applied", "applied"]


async def test_a_batch_that_fails_in_the_middle_changes_nothing(store: Store) -> None:
    whole = commit(work=(work("a"),), timers=(("t", 1),), inbox=(("1", signal("s")),), projection={"status": "running"})
    broken = Commit("2", 0, (event("2", 1, payload={"x": object()}),))
    with pytest.raises(TypeError):
        await store.commit([whole, broken])
    assert await store.read("1") == []
    assert await store.execution("1") is None
    assert await store.claim("w", [""], 5, 10, 20) == []
    assert await store.due(10, 10) == []
    assert await store.inbox(10) == []
    assert await statuses(store, whole) == ["applied"]


async def test_the_row_of_an_execution_is_the_last_projection(store: Store) -> None:
    await store.commit([commit(projection={"status": "running", "path": "a/b"})])
    await store.commit([commit(at=1, count=2)])
    row = await store.execution("1")
    assert row == {"execution_id": "1", "status": "running", "path": "a/b", "last_seq": 3}
    await store.commit([commit(at=3, projection={"status": "completed", "result": ODD})])
    row = await store.execution("1")
    assert row == {"execution_id": "1", "status": "completed", "result": ODD, "last_seq": 4}
    assert await store.execution("2") is None


async def test_a_row_that_is_the_same_stays_and_its_execution_goes_on(store: Store) -> None:
    row = {"status": "running", "path": "a/b", "needs_signal": False}
    await store.commit([commit(projection=row)])
    unread = {"status": "not written"}
    same = [commit(at=at, projection=unread, has_same_row=True) for at in (1, 2)]
    assert await statuses(store, *same) == ["applied"] * 2
    assert await store.execution("1") == {**row, "execution_id": "1", "last_seq": 3}


async def test_executions_are_listed_by_prefix_and_by_what_needs_a_signal(store: Store) -> None:
    for number, (path, state, needs) in enumerate(
        [("a/b", "waiting", True), ("a/bc", "running", False), ("a/c", "completed", True), ("A/b", "paused", True)]
    ):
        row = {"status": state, "path": path, "needs_signal": needs, "started_at": 1}
        await store.commit([commit(str(number), projection=row)])

    async def ids(**given: Any) -> list[str]:
        return [row["execution_id"] for row in await store.executions(Selection(**given))]

    assert await ids(prefix="a/") == ["2", "1", "0"]
    assert await ids(prefix="a/b") == ["1", "0"]
    assert await ids(prefix="") == ["3", "2", "1", "0"]
    assert await ids(prefix="a/%") == []
    assert await ids(back_to="2") == ["3", "2"]
    assert await ids(back_to="1", before="3", prefix="a/b") == ["1"]
    assert await ids(back_to="999") == []
    assert await ids(needs_signal=True) == ["3", "0"]
    assert await ids(needs_signal=False) == ["1"]
    assert await ids(needs_signal=True, prefix="a/", ids=("0", "1")) == ["0"]


async def test_executions_are_counted_by_status_and_time(store: Store) -> None:
    rows = [
        ("a/b", "completed", 100),
        ("a/c", "failed", 120),
        ("x", "running", 210),
        ("a/b", "completed", 230),
        ("x", "waiting", 290),
    ]
    for number, (path, state, at) in enumerate(rows):
        row: dict[str, Any] = {"status": state, "path": path, "started_at": at}
        row |= {"ended_at": at + 7 + number} if state in ("completed", "failed") else {}
        await store.commit([commit(str(number), projection=row)])
    assert await store.open_counts(10) == {"pending": 0, "running": 1, "waiting": 1, "paused": 0}
    assert await store.open_counts(10, ("a/",)) == {"pending": 0, "running": 0, "waiting": 0, "paused": 0}
    every = {(0, "completed"): 1, (0, "failed"): 1, (1, "running"): 1, (1, "completed"): 1, (1, "waiting"): 1}
    assert await store.recent_counts(100, 100, 10) == Recent(every, True)
    assert await store.recent_counts(200, 100, 10) == Recent(
        {(0, status): 1 for status in ("running", "completed", "waiting")}, True
    )
    assert await store.recent_counts(100, 1_000, 2) == Recent({(0, "completed"): 1, (0, "waiting"): 1}, False)
    assert await store.recent_counts(220, 1_000, 2) == Recent({(0, "completed"): 1, (0, "waiting"): 1}, True)
    assert await store.recent_counts(100, 1_000, 10, ("a/",)) == Recent({(0, "completed"): 2, (0, "failed"): 1}, True)
    assert await store.durations("a/b", 10) == [10, 7]
    assert await store.durations("a/b", 1) == [10]
    assert await store.timings(Selection(path="x")) == [
        Timing("4", "x", "waiting", 290, None),
        Timing("2", "x", "running", 210, None),
    ]
    assert await store.timings(Selection(within=("a/",), before="3", limit=1)) == [
        Timing("1", "a/c", "failed", 120, 128)
    ]


async def test_executions_are_listed_newest_first(store: Store) -> None:
    for number in range(5):
        state = "failed" if number % 2 else "completed"
        await store.commit([commit(str(number), projection={"status": state})])

    async def ids(**given: Any) -> list[str]:
        return [row["execution_id"] for row in await store.executions(Selection(**given))]

    assert await ids() == ["4", "3", "2", "1", "0"]
    assert await ids(ids=("1", "3", "77")) == ["3", "1"]
    assert await ids(limit=2) == ["4", "3"]
    assert await ids(before="3", limit=2) == ["2", "1"]
    assert await ids(status=("failed",)) == ["3", "1"]
    assert await ids(before="unknown") == []


async def test_saved_states_are_snapshots_and_the_next_events_in_the_order_asked_for(store: Store) -> None:
    await store.commit([commit("1", count=3), commit("2", count=6), commit("3", count=4), commit("4", count=2)])
    await store.commit([commit("1", at=3, count=5, message="later")])
    await store.save_snapshot("1", 3, 7, b"three")
    await store.save_snapshot("2", 2, 7, b"two")  # in the middle of a commit
    await store.save_snapshot("3", 2, 6, b"of another version")
    await store.save_snapshot("4", 2, 7, b"all of it")
    found = await store.saved_states(["4", "none", "2", "3", "9" * 30, "1"], 7, 4)
    assert [(one.execution_id, one.snapshot, [event.seq for event in one.events]) for one in found] == [
        ("4", (2, b"all of it"), []),
        ("none", None, []),
        ("2", (2, b"two"), [3, 4, 5, 6]),
        ("3", None, [1, 2, 3, 4]),
        ("9" * 30, None, []),
        ("1", (3, b"three"), [4, 5, 6, 7]),
    ]
    assert found[5].events == await store.read("1", 3, 4)
    assert await store.saved_states([], 7, 4) == []


async def test_the_longest_names_fit_into_every_index(store: Store) -> None:
    chance = Random(1)
    path, pool, step, tag = ("".join(chance.choices("😀😁😂🤣😃😄😅😆", k=MOST)) for _ in range(4))
    row = {"status": "running", "path": path, "started_at": 1}
    item = work(step, pool=pool, requires=(tag,), limits=(f"pool {pool}",), flow=f"{path}#1")
    await store.commit([commit(projection=row, work=(item,))])
    assert [one["path"] for one in await store.executions(Selection(path=path))] == [path]


async def test_a_snapshot_of_another_version_is_not_given(store: Store) -> None:
    assert await snapshot_of(store, "1", 1) is None
    await store.save_snapshot("1", 10, 1, b"ten")
    await store.save_snapshot("1", 20, 1, b"twenty")
    await store.save_snapshot("1", 15, 1, b"older")
    assert await snapshot_of(store, "1", 1) == (20, b"twenty")
    assert await snapshot_of(store, "1", 2) is None
    await store.save_snapshot("1", 18, 2, b"new fold")
    assert await snapshot_of(store, "1", 2) == (18, b"new fold")


async def test_two_writers_cannot_append_after_the_same_event(place: Place) -> None:
    one, two = place.open(), place.open()
    assert await statuses(one, commit(message="a")) == ["applied"]
    assert await statuses(two, commit(message="b")) == ["stale"]
    assert await statuses(two, commit(at=1, message="b")) == ["applied"]
    assert await one.read("1") == await two.read("1")


async def test_a_foreign_commit_is_noticed_and_an_own_one_is_not(place: Place) -> None:
    one, two = place.open(), place.open()
    before = await one.version()
    await one.commit([commit()])
    assert await one.version() == before
    await two.commit([commit(at=1)])
    assert await one.version() != before


async def test_messages_are_consumed_once(place: Place) -> None:
    one, two = place.open(), place.open()
    await one.commit([commit(inbox=(("1", signal("s")), ("2", signal("t"))))])
    assert await two.inbox(10) == [("1", signal("s")), ("2", signal("t"))]
    assert await two.inbox(1) == [("1", signal("s"))]
    assert await statuses(one, commit(at=1, consumed=("message-s",))) == ["applied"]
    assert await statuses(two, commit(at=2, consumed=("message-s",))) == ["duplicate"]
    assert await one.inbox(10) == [("2", signal("t"))]


async def test_a_message_is_not_consumed_twice_by_one_batch(store: Store) -> None:
    await store.commit([commit(inbox=(("1", signal("s")),))])
    twice = [commit(at=1, message="a", consumed=("message-s",)), commit(at=2, message="b", consumed=("message-s",))]
    assert await statuses(store, *twice) == ["applied", "duplicate"]


async def test_a_stale_commit_consumes_nothing(store: Store) -> None:
    await store.commit([commit(inbox=(("1", signal("s")),))])
    assert await statuses(store, commit(at=5, consumed=("message-s",))) == ["stale"]
    assert len(await store.inbox(10)) == 1


async def test_timers_are_due_until_they_are_cleared(store: Store) -> None:
    await store.commit([commit(timers=(("late", 30), ("soon", 10))), commit("2", timers=(("soon", 20),))])
    assert await store.next_time(0) == 10
    assert await store.due(9, 10) == []
    assert await store.due(25, 10) == [("1", "soon", 10), ("2", "soon", 20)]
    assert await store.due(25, 1) == [("1", "soon", 10)]
    await store.commit([commit(at=1, cleared=("soon",)), commit("2", 1, timers=(("soon", 40),))])
    assert await store.due(100, 10) == [("1", "late", 30), ("2", "soon", 40)]


async def test_a_timer_cleared_and_set_again_in_one_batch_is_set(store: Store) -> None:
    await store.commit([commit(timers=(("t", 1),))])
    await store.commit([commit(at=1, cleared=("t",)), commit(at=2, timers=(("t", 7),))])
    assert await store.due(10, 10) == [("1", "t", 7)]
    await store.commit([commit(at=3, timers=(("t", 8),)), commit(at=4, cleared=("t",))])
    assert await store.due(10, 10) == []


async def test_putting_work_is_part_of_the_commit(store: Store) -> None:
    await store.commit([put(work("a"))])
    assert [lease.work for lease in await store.claim("w", [""], 5, 10, 20)] == [work("a")]


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(payload=st.dictionaries(st.text(), json, max_size=3))
async def test_any_plain_payload_comes_back(payload: dict[str, Any]) -> None:
    stores: tuple[Store, Store] = (MemoryStore(), SqliteStore(":memory:"))
    for store in stores:
        await store.commit([Commit("1", 0, (event("1", 1, payload=payload),))])
        assert (await store.read("1"))[0].payload == payload
        await store.close()
