"""Every store: single reports, each of which finishes work and creates the next."""

from __future__ import annotations

import pytest

from noetl.model.work import Lease
from noetl.ports import Claim, Commit, Receipt
from tests.conformance.commits import commit, put, work
from tests.conformance.conftest import Place, Store

pytestmark = pytest.mark.asyncio
RUNNING = {"status": "running", "path": "row"}
CLAIM = Claim("w", ("",), 1, 10, 20)


async def begun(store: Store) -> Lease:
    """Start an execution and lease its first work."""
    receipt = await store.commit([commit(work=(work("s0"),), projection=RUNNING)], [CLAIM])
    return receipt.leases[0][0]


def step(at: int, lease: Lease, following: str, message: str = "") -> Commit:
    """Build the report on a lease that creates the next work."""
    held = (lease.work.work_id, lease.epoch)
    return commit("1", at, 2, message, finished=(held,), work=(work(following),), projection=RUNNING)


def status(receipt: Receipt) -> str:
    return receipt.commits[0].status


async def test_each_report_brings_the_next_work(store: Store) -> None:
    lease = await begun(store)
    for number in range(1, 5):
        receipt = await store.commit([step(2 * number - 1, lease, f"s{number}")], [CLAIM])
        assert (status(receipt), receipt.commits[0].last_seq) == ("applied", 2 * number + 1)
        [[following]] = receipt.leases
        assert (following.work, following.attempt) == (work(f"s{number}"), 1)
        assert (following.until, following.worker) == (20, "w")
        assert following.epoch > lease.epoch
        lease = following
    assert [event.seq for event in await store.read("1")] == list(range(1, 10))
    assert [place.writer_seq for place in await store.feed({}, 20)] == list(range(1, 10))
    row = await store.execution("1")
    assert row is not None
    assert (row["last_seq"], row["status"]) == (9, "running")
    assert await store.leased("w", 20) == [("1:s4", lease.epoch)]
    assert await store.claim("v", ("",), 9, 10, 20) == []


async def test_other_claims_get_nothing(store: Store) -> None:
    lease = await begun(store)
    await store.commit([step(1, lease, "s1")], [CLAIM])
    [(_, epoch)] = await store.leased("w", 20)
    claims = [Claim("v", ("gpu",), 3, 10, 20), CLAIM, Claim("u", ("",), 3, 10, 20)]
    done = commit("1", 3, 2, finished=(("1:s1", epoch),), work=(work("s2"),), projection=RUNNING)
    receipt = await store.commit([done], claims)
    assert [[one.work.step for one in found] for found in receipt.leases] == [[], ["s2"], []]


async def test_older_work_comes_first(store: Store) -> None:
    lease = await begun(store)
    lease = (await store.commit([step(1, lease, "s1")], [CLAIM])).leases[0][0]
    await store.commit([put(work("old", execution="2"), execution="2")])
    receipt = await store.commit([step(3, lease, "s2")], [CLAIM])
    assert (status(receipt), [one.work.work_id for one in receipt.leases[0]]) == ("applied", ["2:old"])
    assert [one.work.work_id for one in await store.claim("v", ("",), 9, 10, 20)] == ["1:s2"]


@pytest.mark.parametrize("reported", [True, False])
async def test_a_report_on_a_stale_state_changes_nothing(place: Place, reported: bool) -> None:
    one, two = place.open(), place.open()
    lease = await begun(one)
    if reported:
        lease = (await one.commit([step(1, lease, "s1")], [CLAIM])).leases[0][0]
    at = 3 if reported else 1
    await two.commit([commit("1", at, message="elsewhere", projection=RUNNING)])
    receipt = await one.commit([step(at, lease, "never")], [CLAIM])
    assert (status(receipt), receipt.leases) == ("stale", ((),))
    assert await one.leased("w", 20) == [(lease.work.work_id, lease.epoch)]
    assert len(await one.read("1")) == at + 1
    receipt = await one.commit([step(at + 1, lease, "s2")], [CLAIM])
    assert (status(receipt), len(receipt.leases[0])) == ("applied", 1)


async def test_a_report_on_a_lost_lease_is_fenced(place: Place) -> None:
    one, two = place.open(), place.open()
    lease = await begun(one)
    lease = (await one.commit([step(1, lease, "s1")], [CLAIM])).leases[0][0]
    await two.release([(lease.work.work_id, lease.epoch)], 10)
    [again] = await two.claim("v", ("",), 1, 10, 20)
    receipt = await one.commit([step(3, lease, "never")], [CLAIM])
    assert (status(receipt), receipt.leases) == ("fenced", ((),))
    assert await one.leased("v", 20) == [("1:s1", again.epoch)]
    assert len(await one.read("1")) == 3


async def test_a_report_that_was_applied_is_a_duplicate(store: Store) -> None:
    lease = await begun(store)
    lease = (await store.commit([step(1, lease, "s1", message="same")], [CLAIM])).leases[0][0]
    receipt = await store.commit([step(3, lease, "never", message="same")], [CLAIM])
    assert (status(receipt), receipt.leases) == ("duplicate", ((),))
    assert await store.leased("w", 20) == [("1:s1", lease.epoch)]


async def test_work_that_is_there_already_stays_where_it_is(store: Store) -> None:
    lease = await begun(store)
    lease = (await store.commit([step(1, lease, "s1")], [CLAIM])).leases[0][0]
    later = commit("1", 3, 2, work=(work("s2", available_at=50),), projection=RUNNING)
    await store.commit([later])
    receipt = await store.commit([step(5, lease, "s2")], [CLAIM])
    assert status(receipt) == "applied"
    held = [*receipt.leases[0], *await store.claim("v", ("",), 9, 60, 70)]
    assert [one.work for one in held] == [work("s2")]
    assert len(await store.read("1")) == 7


async def test_a_row_that_another_process_wrote_is_written_again(place: Place) -> None:
    one, two = place.open(), place.open()
    lease = await begun(one)
    lease = (await one.commit([step(1, lease, "s1")], [CLAIM])).leases[0][0]
    await two.commit([commit("1", 3, 2, "pause", projection={"status": "paused", "path": "row"})])
    receipt = await one.commit([step(5, lease, "s2")], [CLAIM])
    assert status(receipt) == "applied"
    row = await two.execution("1")
    assert row is not None
    assert (row["status"], row["last_seq"]) == ("running", 7)
