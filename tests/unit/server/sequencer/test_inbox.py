"""The inbox: batches in order, and which subscriptions claim with which batch."""

from __future__ import annotations

from collections.abc import Iterable

from noetl.model.messages import Pause
from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim, Commit
from noetl.server.sequencer.inbox import Entry, Inbox, Subscription
from tests.conformance.commits import work

REPORTER = Claim("reporter", ("",), 1, 0, 9)


def entry(name: str, *, alone: bool = False) -> Entry:
    return Entry("1", Pause(name), lambda _: True, alone=alone)


def changes(*items: WorkItem) -> list[Commit]:
    return [Commit("1", 0, (), work=items)]


def subscription(worker: str, *pools: str, capacity: int = 1, waits: bool = True) -> Subscription:
    return Subscription(
        worker, (pools or ("",), ()), capacity, lambda _: None, lambda _: None, lambda _: None, waits=waits
    )


def waiting(*subscriptions: Subscription) -> Inbox:
    """An inbox in which the queue was looked into for these, in vain, a long time ago."""
    inbox = Inbox()
    for one in subscriptions:
        inbox.request(one, 0)
    chosen = inbox.choose([], [], 0)
    claims = [Claim(one.worker, one.pools, one.capacity, -10_000, 9) for one in chosen]
    inbox.served(chosen, claims, [()] * len(chosen))
    return inbox


def names(entries: Iterable[Entry]) -> str:
    return "".join(entry.message.message_id for entry in entries)


def workers(subscriptions: Iterable[Subscription]) -> list[str]:
    return [one.worker for one in subscriptions]


def test_batches_keep_the_order_of_arrival() -> None:
    inbox = Inbox()
    inbox.append(entry(name) for name in "abcde")
    first = inbox.take(3)
    assert names(first) == "abc"
    inbox.put_back(first[1:])
    assert names(inbox.take(9)) == "bcde"
    assert inbox.is_idle


def test_an_entry_that_must_be_alone_is_a_batch() -> None:
    inbox = Inbox()
    inbox.append([entry("d")])
    inbox.put_back([entry(name, alone=name == "b") for name in "abc"])
    assert [names(inbox.take(9)) for _ in range(3)] == ["a", "b", "cd"]
    inbox.append(entry(name) for name in "ef")
    assert names(inbox.take(9)) == "ef"


def test_an_own_message_is_under_way_once() -> None:
    inbox = Inbox()
    assert inbox.add_own("1", Pause("a"))
    assert not inbox.add_own("1", Pause("a"))
    assert inbox.take(9)[0].consumed == ("a",)
    assert entry("b").consumed == ()
    inbox.forget_own("a")
    assert inbox.add_own("1", Pause("a"))


def test_an_abandoned_entry_gives_its_leases_up_and_has_no_reply() -> None:
    lease = Lease(work("a"), 1, 1, 9, "x")
    one = Entry("1", Pause("a"), lambda _: True, want=1)
    one.serve([lease])
    assert one.abandon() == [lease]
    assert (one.leases, one.want, one.take_reply()) == ([], 0, None)


def test_subscriptions_claim_when_a_batch_has_enough_for_them() -> None:
    subscriptions = [
        subscription("x", "p"),
        subscription("y", "p", capacity=5),
        subscription("z", "p"),
        subscription("q", "other"),
    ]
    inbox = waiting(*subscriptions)
    assert workers(inbox.choose([], changes(work("a", pool="p")), 0)) == ["x"]
    assert workers(inbox.choose([], changes(*(work(name, pool="p") for name in "abc")), 0)) == ["x", "y"]
    assert workers(inbox.choose([], changes(work("a", pool="p", available_at=9)), 8)) == []
    assert workers(inbox.choose([], changes(work("a", pool="p", available_at=9)), 9)) == ["x"]
    assert workers(inbox.choose([], [], 0)) == []


def test_all_that_wait_claim_after_the_queue_changed_by_other_means() -> None:
    inbox = waiting(subscription("x"), subscription("y"))
    idle = [inbox.is_idle]
    inbox.look()
    idle.append(inbox.is_idle)
    assert workers(inbox.choose([], [], 0)) == ["x", "y"]
    assert [*idle, inbox.is_idle] == [True, False, True]


def test_a_subscription_that_comes_during_a_commit_claims_with_the_next() -> None:
    inbox = Inbox()
    assert inbox.choose([], changes(), 0) == []
    inbox.request(subscription("late"), 0)
    assert workers(inbox.choose([], changes(), 0)) == ["late"]


def test_reporters_come_first_and_closed_subscriptions_are_passed_over() -> None:
    inbox = waiting(subscription("old"))
    gone = subscription("gone")
    inbox.request(subscription("new"), 0)
    inbox.request(gone, 0)
    gone.close()
    assert workers(inbox.choose([REPORTER], changes(*(work(name) for name in "abcd")), 0)) == ["new", "old"]


def test_what_reporters_take_is_not_claimed_by_others() -> None:
    inbox = waiting(subscription("old"))
    assert workers(inbox.choose([REPORTER], changes(work("a")), 0)) == []
    inbox.note_left([work("b", pool="elsewhere"), work("c", requires=("gpu",))])
    assert inbox.is_idle
    inbox.note_left([work("b")])
    assert not inbox.is_idle


def test_an_empty_queue_is_not_looked_into_until_something_comes_or_a_while_has_passed() -> None:
    inbox, first = Inbox(), subscription("x", capacity=2)
    assert inbox.request(first, 0)
    [chosen] = inbox.choose([], changes(), 0)
    inbox.served([chosen], [Claim("x", ("",), 2, 5, 9)], [()])
    assert inbox.is_dry((("",), ()), 6)
    assert not inbox.request(subscription("y"), 6)
    assert not inbox.request(first, 6)  # it waits already
    assert inbox.request(subscription("z", "other"), 6)
    assert workers(inbox.choose([], changes(work("a")), 6)) == ["z", "x"]  # those that wait claim as ever
    assert inbox.request(subscription("y"), 5 + 1_000)
    inbox.note_left([work("a", pool="anywhere")])
    assert inbox.request(subscription("w"), 7)


def test_nothing_is_known_of_a_queue_that_had_enough_or_changed_meanwhile() -> None:
    inbox, first = Inbox(), subscription("x", capacity=1)
    lease = Lease(work("a"), 1, 1, 9, "x")
    inbox.served([first], [REPORTER], [(lease,)])
    assert inbox.request(subscription("y"), 0)
    inbox.look()
    inbox.served([first], [REPORTER], [()])
    assert inbox.request(subscription("z"), 0)


def test_a_claim_that_does_not_wait_is_always_looked_for_and_then_forgotten() -> None:
    inbox, brief = Inbox(), subscription("x", waits=False)
    inbox.served([brief], [REPORTER], [()])
    assert inbox.request(brief, 0)
    assert workers(inbox.choose([], [], 0)) == ["x"]
    inbox.served([brief], [REPORTER], [()])
    inbox.look()
    assert inbox.is_idle


def test_a_subscription_that_got_all_it_claimed_and_has_capacity_claims_again() -> None:
    inbox, one = Inbox(), subscription("x", capacity=2)
    inbox.request(one, 0)
    chosen = inbox.choose([], [], 0)
    one.set_capacity(3)
    one.deliver([Lease(work(name), 1, 1, 9, "x") for name in "ab"])
    inbox.served(chosen, [Claim("x", ("",), 2, 0, 9)], [("a", "b")])  # type: ignore[list-item]
    assert one.capacity == 1
    assert workers(inbox.choose([], [], 0)) == ["x"]


def test_claims_of_a_commit_that_failed_are_made_again() -> None:
    inbox = waiting(subscription("x"))
    chosen = inbox.choose([], changes(work("a")), 0)
    inbox.claim_again(chosen)
    assert workers(inbox.choose([], [], 0)) == ["x"]


def test_one_that_was_served_comes_after_the_others() -> None:
    first, second = subscription("x", capacity=5), subscription("y", capacity=5)
    inbox = waiting(first, second)
    chosen = inbox.choose([], changes(work("a")), 0)
    assert workers(chosen) == ["x"]
    inbox.served(chosen, [Claim("x", ("",), 5, 0, 9)], [(Lease(work("a"), 1, 1, 9, "x"),)])
    assert workers(inbox.choose([], changes(work("b")), 0)) == ["y"]
