"""StateCache: folds the log, from a snapshot if any, and drops stale states."""

from __future__ import annotations

import pytest

from noetl.engine.state.execution import STATE_VERSION, checksum
from noetl.server.cache.state_cache import StateCache
from noetl.server.control_plane import LocalControlPlane, Store
from tests.conformance.commits import snapshot_of
from tests.unit.server.system import RealClock, begin, chain, ended, register, workers

pytestmark = pytest.mark.asyncio


async def ran(store: Store, every: int) -> str:
    async with LocalControlPlane(store, RealClock(), snapshot_every=every) as control, workers(control):
        execution_id = await begin(control, await register(store, chain(12)))
        await ended(control, store, execution_id)
    return execution_id


async def test_a_state_that_never_was_is_pending(store: Store) -> None:
    state = await StateCache(store).get("never")
    assert (state.seq, state.status) == (0, "pending")


async def test_snapshots_are_saved_as_the_log_grows(store: Store) -> None:
    execution_id = await ran(store, 10)
    saved = await snapshot_of(store, execution_id, STATE_VERSION)
    assert saved is not None
    assert saved[0] > len(await store.read(execution_id)) - 25


async def test_no_snapshot_is_saved_before_it_is_worth_it(store: Store) -> None:
    execution_id = await ran(store, 1_000)
    assert await snapshot_of(store, execution_id, STATE_VERSION) is None


async def test_a_state_with_more_in_it_than_was_committed_is_not_saved(store: Store) -> None:
    execution_id = await ran(store, 1_000)
    states = StateCache(store, every=1)
    state = await states.get(execution_id)
    await states.committed(execution_id, state.seq - 1)
    assert await snapshot_of(store, execution_id, STATE_VERSION) is None
    state.seq += 100
    await states.committed(execution_id, state.seq - 1)
    assert await snapshot_of(store, execution_id, STATE_VERSION) is None
    await states.committed(execution_id, state.seq)
    assert await snapshot_of(store, execution_id, STATE_VERSION) is not None


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x01"])
async def test_a_snapshot_that_cannot_be_read_is_no_harm(store: Store, data: bytes) -> None:
    execution_id = await ran(store, 1_000)
    whole = checksum(await StateCache(store).get(execution_id))
    await store.save_snapshot(execution_id, 5, STATE_VERSION, data)
    assert checksum(await StateCache(store).get(execution_id)) == whole


async def test_a_snapshot_of_another_fold_is_not_used(store: Store) -> None:
    execution_id = await ran(store, 1_000)
    whole = checksum(await StateCache(store).get(execution_id))
    await store.save_snapshot(execution_id, 5, STATE_VERSION + 1, b"another fold")
    assert checksum(await StateCache(store).get(execution_id)) == whole


async def test_states_are_kept_until_dropped_or_pushed_out(store: Store) -> None:
    states = StateCache(store, most=2)
    one = await states.get("1")
    await states.get("2")
    assert await states.get("1") is one
    await states.get("3")
    assert await states.get("1") is one  # used more recently than 2
    states.drop("1")
    states.drop("unknown")
    assert await states.get("1") is not one


async def test_states_of_executions_that_have_ended_are_pushed_out_before_any_that_has_not(store: Store) -> None:
    states = StateCache(store, most=4, few=2)
    live = {name: await states.get(name) for name in ("1", "2", "3")}
    live["2"].phase = "ended"
    states.mark_ended("2")
    states.mark_ended("unknown")
    live["4"] = await states.get("4")  # there is no place for 2 any more, and for all others
    assert [await states.get(name) is live[name] for name in ("1", "3", "4")] == [True] * 3
    assert await states.get("2") is not live["2"]
    await states.get("5")
    assert await states.get("1") is not live["1"]  # the least used of more than there is place for


async def test_large_states_are_evicted_by_their_size(store: Store) -> None:
    states = StateCache(store, most_bytes=3_000_000)
    for number in range(10):
        states.new(str(number)).workload["text"] = "x" * 1_000_000
        states.weigh(str(number))
    assert [number for number in range(10) if states.known(str(number)) is not None] == [8, 9]
    states.drop("9")
    for number in range(20, 30):
        states.new(str(number))
        states.weigh(str(number))
    assert states.known("8") is not None


async def test_a_pinned_state_is_not_evicted(store: Store) -> None:
    states = StateCache(store, most=2, most_bytes=1_000_000)
    first = states.new("1")
    with states.pinned("1"):
        for number in range(2, 9):
            states.new(str(number)).workload["text"] = "x" * 900_000
            states.weigh(str(number))
        assert states.known("1") is first
        states.drop("1")
        assert states.known("1") is None
    states.new("9")
    states.new("10")
    assert states.known("8") is None


async def test_an_evicted_state_comes_back_without_the_store(store: Store) -> None:
    states = StateCache(store, most=1)
    first = states.new("1")
    first.ctx.update({"total": 2.5, "names": ["a"]})
    first.seq = 7
    whole = checksum(first)
    states.new("2")
    found = states.known("1")
    assert found is not None
    assert found is not first
    assert checksum(found) == whole
    found.seq = 8
    states.known("2")
    assert getattr(states.known("1"), "seq", None) == 8


async def test_an_evicted_state_is_dropped_like_any(store: Store) -> None:
    states = StateCache(store, most=1)
    states.new("1").seq = 7
    states.new("2")
    states.drop("1")
    assert states.known("1") is None
    states.new("3").seq = 7
    states.new("4")
    assert states.new("3").seq == 0
    states.drop("3")
    assert states.known("3") is None


async def test_few_bytes_of_evicted_states_are_kept(store: Store) -> None:
    states = StateCache(store, most=1, most_evicted_bytes=20_000)
    for number in range(10):
        states.new(str(number)).iter = {"text": "x" * 6_000}
    assert [number for number in range(10) if states.known(str(number)) is not None] == [6, 7, 8, 9]  # 9 was the last


@pytest.mark.parametrize("value", [2**70, "x" * 70_000])
async def test_what_cannot_be_kept_encoded_is_read_again(store: Store, value: object) -> None:
    states = StateCache(store, most=1)
    states.new("1").iter = {"value": value}
    states.new("2")
    assert states.known("1") is None


async def test_an_ended_state_is_not_kept(store: Store) -> None:
    states = StateCache(store, most=1)
    states.new("1").phase = "ended"
    states.new("2")
    assert states.known("1") is None
