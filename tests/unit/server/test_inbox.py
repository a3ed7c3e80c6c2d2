"""What waits for the sequencer: batches in order, and whose asking goes with which batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from noetl.model.messages import Pause
from noetl.model.work import Lease, WorkItem
from noetl.ports import Claim, Commit
from noetl.server.inbox import Answer, Ask, Entry, Inbox
from tests.conformance.commits import work

pytestmark = pytest.mark.asyncio
REPORTER = Claim("reporter", ("",), 1, 0, 9)


def entry(name: str, *, alone: bool = False) -> Entry:
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    return Entry("1", Pause(name), answer, alone=alone)


def changes(*items: WorkItem) -> list[Commit]:
    return [Commit("1", 0, (), work=items)]


def ask(worker: str, *pools: str, most: int = 1) -> Ask:
    return Ask(worker, pools or ("",), most, asyncio.get_running_loop().create_future(), waits=True)


def names(entries: Iterable[Entry]) -> str:
    return "".join(entry.message.message_id for entry in entries)


def asking(asks: Iterable[Ask]) -> list[str]:
    return [ask.worker for ask in asks]


async def test_batches_keep_the_order_of_arrival() -> None:
    inbox = Inbox()
    inbox.entries.extend(entry(name) for name in "abcde")
    first = inbox.take(3)
    assert names(first) == "abc"
    inbox.again(first[1:])
    assert names(inbox.take(9)) == "bcde"
    assert inbox.idle()


async def test_an_entry_that_must_be_alone_is_a_batch() -> None:
    inbox = Inbox()
    inbox.entries.append(entry("d"))
    inbox.again([entry(name, alone=name == "b") for name in "abc"])
    assert [names(inbox.take(9)) for _ in range(3)] == ["a", "b", "cd"]
    inbox.entries.extend(entry(name) for name in "ef")
    assert names(inbox.take(9)) == "ef"


async def test_an_own_message_is_under_way_once() -> None:
    inbox = Inbox()
    assert inbox.own("1", Pause("a"))
    assert not inbox.own("1", Pause("a"))
    assert inbox.take(9)[0].consumed == ("a",)
    assert entry("b").consumed == ()


async def test_those_who_wait_are_served_when_there_is_enough_for_them() -> None:
    inbox = Inbox(waiting=[ask("x", "p"), ask("y", "p", most=5), ask("z", "p"), ask("q", "other")])
    assert asking(inbox.served([], changes(work("a", pool="p")), 0)) == ["x"]
    assert asking(inbox.served([], changes(*(work(name, pool="p") for name in "abc")), 0)) == ["x", "y"]
    assert asking(inbox.served([], changes(work("a", pool="p", available_at=9)), 8)) == []
    assert asking(inbox.served([], changes(work("a", pool="p", available_at=9)), 9)) == ["x"]
    assert asking(inbox.served([], [], 0)) == []


async def test_all_who_wait_are_served_after_a_change_by_another_hand() -> None:
    inbox = Inbox(waiting=[ask("x"), ask("y")], look=True)
    assert not inbox.idle()
    assert asking(inbox.served([], [], 0)) == ["x", "y"]
    assert inbox.idle()


async def test_whoever_asks_while_a_batch_is_written_is_none_of_those_it_serves() -> None:
    inbox = Inbox()
    chosen = inbox.served([], changes(), 0)
    inbox.asks.append(ask("late"))
    assert chosen == []
    chosen = inbox.served([], changes(), 0)
    inbox.asks.append(ask("later"))
    assert asking(chosen) == ["late"]


async def test_reporters_come_first_and_those_who_left_are_passed_over() -> None:
    gone = ask("gone")
    gone.answer.set_result([])
    inbox = Inbox(asks=[ask("new"), gone], waiting=[ask("old")])
    assert asking(inbox.served([REPORTER], changes(*(work(name) for name in "abcd")), 0)) == ["new", "old"]
    assert inbox.asks == []


async def test_what_reporters_take_is_not_looked_for_by_others() -> None:
    inbox = Inbox(waiting=[ask("old")])
    assert asking(inbox.served([REPORTER], changes(work("a")), 0)) == []
    inbox.left_over([work("b", pool="elsewhere"), work("c", requires=("gpu",))])
    assert not inbox.look
    inbox.left_over([work("b")])
    assert inbox.look


async def test_what_the_queue_has_none_of_is_not_looked_for_until_something_comes_or_a_while_has_passed() -> None:
    inbox, first = Inbox(), ask("x", most=2)
    assert inbox.ask(first, 0)
    [chosen] = inbox.served([], changes(), 0)
    inbox.answered([chosen], [Claim("x", ("",), 2, 5, 9)], [()])
    assert not inbox.ask(ask("y"), 6)
    assert not inbox.ask(first, 6)  # it waits already
    assert inbox.ask(ask("z", "other"), 6)
    assert asking(inbox.waiting) == ["x", "y"]
    assert asking(inbox.served([], changes(work("a")), 6)) == ["z", "x"]  # those who wait are served as ever
    assert inbox.ask(ask("y"), 5 + 1_000)
    inbox.left_over([work("a", pool="anywhere")])
    assert inbox.ask(ask("y"), 7)


async def test_nothing_is_known_of_the_queue_where_something_came_meanwhile_or_it_had_enough() -> None:
    inbox, first = Inbox(), ask("x", most=1)
    lease = Lease(work("a"), 1, 1, 9, "x")
    inbox.answered([first], [REPORTER], [(lease,)])
    assert inbox.ask(ask("y"), 0)
    inbox.look = True
    inbox.answered([first], [REPORTER], [()])
    assert inbox.ask(ask("y"), 0)


async def test_one_that_does_not_wait_is_always_looked_for() -> None:
    inbox, brief = Inbox(), ask("x")
    inbox.answered([brief], [REPORTER], [()])
    brief.waits = False
    assert inbox.ask(brief, 0)
