"""Every work queue: order, leases with epochs, fencing inside commits, expiry."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noetl.model.messages import LeaseLost
from noetl.model.work import Lease
from noetl.ports import Claim
from tests.conformance.commits import commit, put, work
from tests.conformance.conftest import Place, Store

pytestmark = pytest.mark.asyncio


def names(leases: list[Lease] | tuple[Lease, ...]) -> list[str]:
    return [lease.work.step for lease in leases]


def held(*leases: Lease) -> list[tuple[str, int]]:
    return [(lease.work.work_id, lease.epoch) for lease in leases]


async def test_the_queue_goes_by_priority_then_age(store: Store) -> None:
    await store.commit([put(work("a"), work("b", priority=5)), put(work("c"), work("d", priority=5), at=1)])
    assert names(await store.claim("w", [""], 3, 10, 20)) == ["b", "d", "a"]
    assert names(await store.claim("w", [""], 3, 10, 20)) == ["c"]
    assert await store.claim("w", [""], 3, 10, 20) == []


async def test_a_claim_sees_its_pools_only_in_one_order(store: Store) -> None:
    items = [work("a", pool="x"), work("b", pool="y", priority=1), work("c"), work("d", pool="x"), work("e", pool="y")]
    await store.commit([put(*items)])
    assert await store.claim("w", [], 5, 10, 20) == []
    assert await store.claim("w", ["z"], 5, 10, 20) == []
    assert names(await store.claim("w", ["x", "y", "x"], 3, 10, 20)) == ["b", "a", "d"]
    assert names(await store.claim("w", ["x", "y"], 3, 10, 20)) == ["e"]


async def test_nothing_is_claimed_where_nothing_is_asked(store: Store) -> None:
    await store.commit([put(work("a"))])
    assert await store.claim("w", [""], 0, 10, 20) == []


async def test_work_waits_for_its_time(store: Store) -> None:
    await store.commit([put(work("later", available_at=50), work("now"))])
    assert names(await store.claim("w", [""], 5, 49, 60)) == ["now"]
    assert await store.next_time(10) == 50
    assert names(await store.claim("w", [""], 5, 50, 60)) == ["later"]


async def test_work_that_came_of_age_stands_by_its_priority_and_age(store: Store) -> None:
    items = [work("a", available_at=50), work("b"), work("c", available_at=60, priority=1), work("d", available_at=70)]
    await store.commit([put(*items)])
    assert names(await store.claim("w", [""], 5, 65, 99)) == ["c", "a", "b"]
    assert await store.next_time(65) == 70


async def test_work_that_is_put_off_again_waits_again(store: Store) -> None:
    await store.commit([put(work("a", available_at=50), work("b"))])
    assert names(await store.claim("w", [""], 1, 55, 99)) == ["a"]
    await store.commit([put(work("b", available_at=80), at=1)])
    assert await store.claim("w", [""], 1, 60, 99) == []
    assert names(await store.claim("w", [""], 1, 80, 99)) == ["b"]


async def test_work_goes_to_those_who_have_its_tags(store: Store) -> None:
    items = [work("a", requires=("gpu",)), work("b"), work("c", requires=("gpu", "eu"), priority=1)]
    await store.commit([put(*items, work("d", requires=("us",), priority=2), work("e", pool="x", requires=("eu",)))])
    assert names(await store.claim("w", [""], 9, 10, 20, ["eu"])) == ["b"]
    assert names(await store.claim("w", ["", "x"], 9, 10, 20, ["eu", "gpu", "more"])) == ["c", "a", "e"]
    assert await store.claim("w", [""], 9, 10, 20) == []
    receipt = await store.commit([], [Claim("w", ("",), 1, 10, 20), Claim("v", ("",), 1, 10, 20, ("us",))])
    assert [names(leases) for leases in receipt.leases] == [[], ["d"]]


async def test_what_work_requires_may_change(store: Store) -> None:
    await store.commit([put(work("a", requires=("gpu",)))])
    await store.commit([put(work("a"), at=1)])
    assert names(await store.claim("w", [""], 9, 10, 20)) == ["a"]


async def test_a_lease_says_who_holds_what_until_when(store: Store) -> None:
    item = work("a", chunk="0", resume={"at": 3}, role="final", deadline=99)
    await store.commit([put(item)])
    [lease] = await store.claim("w", [""], 1, 10, 20)
    assert (lease.work, lease.attempt, lease.until, lease.worker) == (item, 1, 20, "w")


async def test_no_two_leases_have_one_epoch(store: Store) -> None:
    await store.commit([put(work("a"), work("b"))])
    first = await store.claim("w", [""], 5, 10, 20)
    await store.commit([commit(at=1, finished=tuple(held(*first)))])
    await store.commit([put(work("a"), at=2)])  # a run that was suspended comes back under its own name
    [again] = await store.claim("w", [""], 5, 10, 20)
    assert len({lease.epoch for lease in [*first, again]}) == 3
    assert again.epoch > max(lease.epoch for lease in first)
    assert again.attempt == 1


async def test_finished_work_leaves_the_queue(store: Store) -> None:
    await store.commit([put(work("a"))])
    [lease] = await store.claim("w", [""], 1, 10, 20)
    receipt = await store.commit([commit(at=1, finished=tuple(held(lease)))])
    assert receipt.commits[0].status == "applied"
    assert await store.expired(1_000, 3) == []
    assert await store.extend("w", held(lease), 50) == ["1:a"]


@pytest.mark.parametrize("part", ["finished", "held"])
async def test_a_report_on_a_lost_lease_is_fenced_and_changes_nothing(store: Store, part: str) -> None:
    await store.commit([put(work("a"))])
    [old] = await store.claim("one", [""], 1, 10, 20)
    await store.expired(20, 3)
    [new] = await store.claim("two", [""], 1, 20, 40)
    more: dict[str, Any] = {part: tuple(held(old))}
    late = commit(at=1, work=(work("b"),), timers=(("t", 1),), **more)
    assert (await store.commit([late])).commits[0].status == "fenced"
    assert len(await store.read("1")) == 1
    assert await store.due(10, 10) == []
    assert await store.claim("w", [""], 5, 20, 30) == []
    more = {part: tuple(held(new))}
    assert (await store.commit([commit(at=1, **more)])).commits[0].status == "applied"


@pytest.mark.parametrize("part", ["finished", "held"])
async def test_work_that_nobody_holds_fences(store: Store, part: str) -> None:
    await store.commit([put(work("queued"))])
    for work_id in ("1:queued", "1:unknown"):
        more: dict[str, Any] = {part: ((work_id, 0),)}
        receipt = await store.commit([commit(at=1, **more)])
        assert receipt.commits[0].status == "fenced"


async def test_one_batch_finishes_a_piece_of_work_once(store: Store) -> None:
    await store.commit([put(work("a"))])
    done = tuple(held(*await store.claim("w", [""], 1, 10, 20)))
    receipt = await store.commit([commit(at=1, message="x", finished=done), commit(at=2, message="y", finished=done)])
    assert [found.status for found in receipt.commits] == ["applied", "fenced"]


async def test_held_work_stays_leased_and_may_change(store: Store) -> None:
    await store.commit([put(work("a"))])
    [lease] = await store.claim("w", [""], 1, 10, 20)
    moved = work("a", resume={"at": 2})
    await store.commit([commit(at=1, held=tuple(held(lease)), work=(moved,))])
    assert await store.claim("other", [""], 1, 10, 20) == []
    assert await store.extend("w", held(lease), 30) == []
    [(expired, dead)] = await store.expired(30, 3)
    assert (expired.work, dead) == (moved, False)
    [again] = await store.claim("other", [""], 1, 30, 40)
    assert (again.work, again.attempt) == (moved, 2)


async def test_dropped_work_is_gone_whoever_holds_it(store: Store) -> None:
    await store.commit([put(work("a"), work("b"), work("c"))])
    [lease] = await store.claim("w", [""], 1, 10, 20)
    await store.commit([commit(at=1, dropped=("1:a", "1:b", "1:unknown"))])
    assert await store.extend("w", held(lease), 50) == ["1:a"]
    assert names(await store.claim("w", [""], 5, 10, 20)) == ["c"]


async def test_work_dropped_and_put_again_is_new(store: Store) -> None:
    await store.commit([put(work("a"))])
    [old] = await store.claim("w", [""], 1, 10, 20)
    await store.commit([commit(at=1, dropped=("1:a",), work=(work("a", resume={"at": 1}),))])
    [new] = await store.claim("w", [""], 1, 10, 20)
    assert new.epoch > old.epoch
    assert new.work.resume == {"at": 1}
    assert (await store.commit([commit(at=2, finished=tuple(held(old)))])).commits[0].status == "fenced"


async def test_work_put_and_dropped_in_one_batch_never_was(store: Store) -> None:
    await store.commit([put(work("a")), commit(at=1, dropped=("1:a",))])
    assert await store.claim("w", [""], 5, 10, 20) == []


async def test_a_batch_hands_its_own_work_out(store: Store) -> None:
    claims = [Claim("one", ("",), 1, 10, 20), Claim("two", ("",), 5, 10, 20), Claim("three", ("",), 5, 10, 20)]
    receipt = await store.commit([put(work("a"), work("b"), work("c"))], claims)
    assert [names(leases) for leases in receipt.leases] == [["a"], ["b", "c"], []]
    assert [lease.worker for leases in receipt.leases for lease in leases] == ["one", "two", "two"]
    assert await store.claim("w", [""], 5, 10, 20) == []


async def test_a_batch_hands_older_work_out_first_and_none_of_a_stale_commit(store: Store) -> None:
    await store.commit([put(work("old"))])
    receipt = await store.commit([put(work("new"), at=1), put(work("never"), at=9)], [Claim("w", ("",), 5, 10, 20)])
    assert [names(leases) for leases in receipt.leases] == [["old", "new"]]


async def test_leases_are_kept_alive_by_their_worker_only(store: Store) -> None:
    await store.commit([put(work("a"), work("b"))])
    one, two = await store.claim("w", [""], 2, 10, 20)
    assert await store.extend("other", held(one), 90) == ["1:a"]
    assert await store.extend("w", [*held(one), (two.work.work_id, two.epoch + 7)], 50) == ["1:b"]
    assert names([lease for lease, _ in await store.expired(20, 3)]) == ["b"]
    assert await store.extend("w", held(one), 30) == []  # never shortened
    assert await store.expired(49, 3) == []
    assert await store.next_time(10) == 50
    assert await store.extend("w", [], 50) == []


async def test_leases_that_run_out_together_come_back_in_the_order_of_their_names(store: Store) -> None:
    claim = Claim("w", ("",), 3, 10, 20)
    whole = put(work("a"), work("b", priority=1), work("c", priority=2))
    [leases] = (await store.commit([whole], [claim])).leases
    assert names(leases) == ["c", "b", "a"]
    assert [lease for lease, _ in await store.expired(20, 3)] == list(reversed(leases))


async def test_expired_leases_are_queued_again_and_lost(store: Store) -> None:
    await store.commit([put(work("a"), work("b", chunk="4"))])
    one, two = await store.claim("w", [""], 2, 10, 20)
    assert await store.expired(19, 3) == []
    assert await store.expired(20, 3) == [(one, False), (two, False)]
    assert await store.expired(99, 3) == []
    sent = [message for _, message in await store.inbox(10)]
    lost = [message for message in sent if isinstance(message, LeaseLost)]
    assert lost == sent
    assert [(message.run_id, message.epoch, message.chunk, message.exhausted) for message in lost] == [
        ("a#1", one.epoch, None, False),
        ("b#1", two.epoch, "4", False),
    ]
    assert [lease.attempt for lease in await store.claim("w", [""], 2, 20, 30)] == [2, 2]


async def test_after_the_last_delivery_work_is_dead(store: Store) -> None:
    await store.commit([put(work("a"))])
    for attempt in (1, 2):
        [lease] = await store.claim("w", [""], 1, 10, 20)
        assert lease.attempt == attempt
        assert [dead for _, dead in await store.expired(20, 2)] == [attempt == 2]
    assert await store.claim("w", [""], 1, 10, 20) == []
    assert [getattr(message, "exhausted", None) for _, message in await store.inbox(10)] == [False, True]
    await store.commit([commit(at=1, dropped=("1:a",)), put(work("a"), at=2)])
    assert names(await store.claim("w", [""], 1, 10, 20)) == ["a"]


async def test_released_work_is_queued_again_without_counting(store: Store) -> None:
    await store.commit([put(work("a"), work("b"))])
    one, two = await store.claim("w", [""], 2, 10, 20)
    await store.release([*held(one), (two.work.work_id, two.epoch + 1)], 11)
    [again] = await store.claim("w", [""], 2, 11, 20)
    assert (again.work.step, again.attempt) == ("a", 1)
    assert (await store.commit([commit(at=1, finished=tuple(held(one)))])).commits[0].status == "fenced"


async def test_leases_are_found_by_who_has_them_and_until_when(store: Store) -> None:
    await store.commit([put(work("a"), work("b"), work("c"))])
    [one] = await store.claim("w", [""], 1, 10, 20)
    [two] = await store.claim("w", [""], 1, 11, 21)
    await store.claim("other", [""], 1, 10, 20)
    assert await store.leased("w", 20) == held(one)
    assert await store.leased("w", 21) == held(two)
    await store.extend("w", held(two), 22)
    assert await store.leased("w", 21) == await store.leased("w", 10) == []
    await store.release(held(one), 12)
    assert await store.leased("w", 20) == []


async def test_work_that_is_abandoned_runs_out_at_once_for_its_own_worker_only(store: Store) -> None:
    await store.commit([put(work("a"), work("b"), work("c"))])
    one, two, three = await store.claim("w", [""], 3, 10, 20)
    assert await store.abandon("other", held(one), 11, 20) == 0
    assert await store.abandon("w", [*held(two), (three.work.work_id, three.epoch + 1)], 11, 20) == 1
    assert [lease.work.step for lease, _ in await store.expired(11, 5)] == ["b"]
    [again] = await store.claim("w", [""], 3, 11, 20)
    assert (again.work.step, again.attempt) == ("b", 2)


async def test_work_that_was_kept_alive_meanwhile_is_not_abandoned(store: Store) -> None:
    await store.commit([put(work("a"), work("b"))])
    one, two = await store.claim("w", [""], 2, 10, 20)
    assert await store.extend("w", held(two), 21) == []
    assert await store.abandon("w", [*held(one), *held(two)], 11, 20) == 1
    assert [lease.work.step for lease, _ in await store.expired(11, 5)] == ["a"]


async def test_what_a_worker_does_not_hold_is_disowned(store: Store) -> None:
    await store.commit([put(work("a"), work("b"), work("c"))])
    one, two = await store.claim("w", [""], 2, 10, 20)
    await store.claim("other", [""], 1, 10, 20)
    assert await store.disown("w", [*held(one), (two.work.work_id, two.epoch - 1)], 11) == 1
    assert [lease.work.step for lease, _ in await store.expired(11, 5)] == ["b"]
    assert await store.disown("w", [], 11) == 1
    assert await store.disown("w", [], 11) == 1  # until it is taken back
    assert [lease.work.step for lease, _ in await store.expired(11, 5)] == ["a"]
    assert await store.disown("w", [], 11) == 0


async def test_claimers_at_once_never_get_the_same_work(place: Place) -> None:
    stores = [place.open() for _ in range(4)]
    await stores[0].commit([put(*(work(f"w{number}") for number in range(200)))])

    async def worker(number: int) -> list[Lease]:
        found: list[Lease] = []
        while leases := await stores[number].claim(f"worker-{number}", [""], 7, 10, 20):
            found += leases
        return found

    leases = [lease for found in await asyncio.gather(*map(worker, range(4))) for lease in found]
    assert len(leases) == 200
    assert len({lease.work.work_id for lease in leases}) == 200
    assert len({lease.epoch for lease in leases}) == 200


async def test_the_next_time_is_the_earliest_of_all(store: Store) -> None:
    assert await store.next_time(10) is None
    await store.commit([put(work("a"))])
    assert await store.next_time(10) is None
    await store.claim("w", [""], 1, 10, 70)
    assert await store.next_time(10) == 70
    await store.commit([commit(at=1, timers=(("t", 60),), work=(work("b", available_at=50),))])
    assert await store.next_time(10) == 50
    assert await store.next_time(50) == 60
    assert await store.next_time(69) == 70
    assert await store.next_time(70) is None


@pytest.mark.parametrize(("civil", "due"), [(100, ["until:b", "t"]), (40, ["t"]), (None, ["until:b", "t"])])
async def test_timers_of_civil_time_are_due_by_the_time_of_day(store: Store, civil: int | None, due: list[str]) -> None:
    await store.commit([commit(timers=(("t", 60), ("until:b", 50), ("until:c", 101), ("u", 71)))])
    assert [name for _, name, _ in await store.due(70, 10, civil)] == due


async def test_the_leases_of_the_dead_run_out_at_once(store: Store) -> None:
    others = [put(work("b", execution=name), execution=name) for name in ("0", "11", "2")]
    await store.commit([put(work("a")), *others])
    await store.claim("w", [""], 5, 10, 1_000)
    assert await store.expire("1", 20) == 1
    assert names([lease for lease, _ in await store.expired(20, 3)]) == ["a"]
    assert await store.expire("unknown", 20) == 0


async def test_a_claim_in_a_commit_gets_older_work_before_new(store: Store) -> None:
    claim = Claim("w", ("",), 1, 10, 20)
    await store.commit([put(work("old"))])
    [[lease]] = (await store.commit([put(work("new"), at=1)], [claim])).leases
    assert lease.work.step == "old"
    [[lease]] = (await store.commit([put(work("newer"), at=2)], [claim])).leases
    assert lease.work.step == "new"


async def test_a_claim_in_a_commit_gets_new_work_that_fits_by_priority(store: Store) -> None:
    new = (
        work("low"),
        work("elsewhere", pool="other", priority=9),
        work("later", available_at=11, priority=9),
        work("tagged", requires=("gpu",), priority=9),
        work("high", priority=1),
    )
    claims = [Claim("w", ("",), 1, 10, 20), Claim("v", ("",), 5, 10, 20)]
    leases = (await store.commit([put(*new)], claims)).leases
    assert [[lease.work.step for lease in found] for found in leases] == [["high"], ["low"]]
    assert leases[0][0].attempt == 1
    assert leases[0][0].epoch != leases[1][0].epoch
    rest = await store.claim("x", ["", "other"], 5, 11, 20, ["gpu"])
    assert {lease.work.step for lease in rest} == {"elsewhere", "later", "tagged"}


async def test_work_that_goes_on_is_not_handed_to_another(store: Store) -> None:
    claim = Claim("w", ("",), 2, 10, 20)
    [[lease]] = (await store.commit([put(work("a"))], [claim])).leases
    held = ((lease.work.work_id, lease.epoch),)
    goes_on = commit(at=1, work=(work("a", resume={"n": 1}), work("b")), held=held)
    [found] = (await store.commit([goes_on], [claim])).leases
    assert [lease.work.step for lease in found] == ["b"]
    await store.release([held[0]], 10)
    [again] = await store.claim("v", [""], 2, 10, 20)
    assert again.work.resume == {"n": 1}


async def test_flows_take_turns_however_much_one_has_queued(store: Store) -> None:
    await store.commit([put(*(work(f"a{n}", flow="a") for n in range(4)))])
    assert names(await store.claim("w", [""], 2, 10, 20)) == ["a0", "a1"]
    await store.commit([put(work("b0", flow="b"), work("b1", flow="b"), at=1)])
    assert names(await store.claim("w", [""], 9, 10, 20)) == ["a2", "b0", "a3", "b1"]


async def test_a_flow_has_as_many_turns_as_its_weight(store: Store) -> None:
    await store.commit([put(*(work(f"a{n}", flow="a") for n in range(3)))])
    await store.commit([put(*(work(f"b{n}", flow="b", weight=2) for n in range(4)), at=1)])
    assert names(await store.claim("w", [""], 9, 10, 20)) == ["a0", "b0", "b1", "a1", "b2", "b3", "a2"]


async def test_a_flow_that_was_served_is_not_put_back_for_it(store: Store) -> None:
    await store.commit([put(*(work(f"a{n}", flow="a") for n in range(60)))])
    await store.claim("w", [""], 50, 10, 20)
    await store.commit([put(*(work(f"b{n}", flow="b") for n in range(60)), at=1)])
    assert names(await store.claim("w", [""], 4, 10, 20)) == ["a50", "b0", "a51", "b1"]


async def test_flows_take_turns_within_a_batch_and_its_claims(store: Store) -> None:
    batch = put(*(work(f"a{n}", flow="a") for n in range(3)), *(work(f"b{n}", flow="b") for n in range(2)))
    receipt = await store.commit([batch], [Claim("w", ("",), 3, 10, 20)])
    assert names(list(receipt.leases[0])) == ["a0", "b0", "a1"]
    assert names(await store.claim("w", [""], 9, 10, 20)) == ["b1", "a2"]


async def test_priority_goes_before_turns(store: Store) -> None:
    await store.commit([put(*(work(f"a{n}", flow="a", priority=1) for n in range(3)))])
    await store.commit([put(work("b", flow="b"), work("c", flow="c", priority=1), at=1)])
    assert names(await store.claim("w", [""], 9, 10, 20)) == ["a0", "c", "a1", "a2", "b"]


async def test_work_that_comes_back_goes_first(store: Store) -> None:
    await store.commit([put(*(work(f"a{n}", flow="a") for n in range(3)))])
    [first, second] = await store.claim("w", [""], 2, 10, 20)
    await store.commit([put(work("b", flow="b"), at=1)])
    await store.release([(lease.work.work_id, lease.epoch) for lease in (second, first)], 10)
    assert names(await store.claim("w", [""], 9, 10, 20)) == ["a0", "a1", "a2", "b"]


async def test_a_pool_that_was_empty_starts_where_the_others_are(store: Store) -> None:
    await store.commit([put(*(work(f"a{n}", flow="a", pool="x") for n in range(9)))])
    await store.claim("w", ["x"], 6, 10, 20)
    await store.commit([put(*(work(f"b{n}", flow="b", pool="y") for n in range(3)), at=1)])
    assert names(await store.claim("w", ["x", "y"], 4, 10, 20)) == ["a6", "b0", "a7", "b1"]


async def test_waiting_work_rises_up_to_the_highest_priority_of_its_pool(store: Store) -> None:
    items = [work("low"), work("high", priority=2), work("later", available_at=90), work("elsewhere", pool="x")]
    await store.commit([put(*items)])  # created at 1,001
    assert await store.age(10, 1_000) == 0  # nothing has waited so long
    assert await store.age(10, 1_001) == 1
    await store.commit([put(work("middle", priority=1), at=1)])
    assert names(await store.claim("w", [""], 2, 10, 20)) == ["high", "low"]
    await store.commit([put(work("other", priority=3), at=2)])
    assert [await store.age(10, 1_002) for _ in range(3)] == [1, 1, 0]  # it keeps its rank
    assert names(await store.claim("w", [""], 9, 10, 20)) == ["other", "middle"]
