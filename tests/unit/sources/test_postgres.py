"""Channels and tables of a real PostgreSQL: nothing is lost that a table holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from noetl.model.errors import SourceUnavailable
from noetl.ports.triggers import Page, Source
from noetl.sources.postgres import ListenSource, TableSource
from noetl.triggers.subscription import SubscriptionSpec
from tests.databases import fresh_database

pytestmark = pytest.mark.asyncio
TABLE: dict[str, Any] = {"source": "table", "table": "public.orders", "key": "id"}


class Base:
    """A database with a table `orders`."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], address: str) -> None:
        self.run, self.address = connection.execute, address
        self.sources: list[Source] = []

    async def connect(self) -> Any:
        return await psycopg.AsyncConnection.connect(self.address, autocommit=True, application_name="source")

    def table(self, **fields: Any) -> TableSource:
        source = TableSource(SubscriptionSpec(**{**TABLE, **fields}), self.connect)
        self.sources.append(source)
        return source

    def listen(self, **fields: Any) -> ListenSource:
        source = ListenSource(SubscriptionSpec("listen", channel="news", **fields), self.connect)
        self.sources.append(source)
        return source


@pytest_asyncio.fixture
async def base() -> AsyncIterator[Base]:
    address = fresh_database("sources")
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute("DROP TABLE IF EXISTS public.orders")
        await connection.execute(
            "CREATE TABLE public.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text, price numeric)"
        )
        made = Base(connection, address)
        try:
            yield made
        finally:
            for source in made.sources:
                await source.close()


async def known(_: Sequence[str]) -> set[str]:
    raise AssertionError("positions tell new messages")


async def poll(source: Source, position: Mapping[str, Any], most: int = 10) -> Page:
    return await source.poll(position, most, known)


def notes(page: Page) -> list[str]:
    return [one.data["note"] for one in page.messages]


async def test_a_table_is_read_from_now_or_from_its_first_row(base: Base) -> None:
    await base.run("INSERT INTO orders (note, price) VALUES ('a', 1.5), ('b', NULL)")
    source = base.table()
    page = await poll(source, {})
    assert (page.messages, page.position) == ((), {"key": "2"})
    await base.run("INSERT INTO orders (note) VALUES ('c')")
    page = await poll(source, page.position)
    assert (notes(page), page.position) == (["c"], {"key": "3"})
    first = base.table(begin="first")
    page = await poll(first, {}, 2)
    assert [(one.message_id, one.data) for one in page.messages] == [
        ("1", {"id": 1, "note": "a", "price": 1.5}), ("2", {"id": 2, "note": "b", "price": None}),
    ]  # fmt: skip
    assert [one.position for one in page.messages] == [{"key": "1"}, {"key": "2"}]
    assert (page.lag, page.more) == (1, True)
    page = await poll(first, page.position)
    assert (notes(page), page.lag, page.more) == (["c"], 0, False)


async def test_keys_may_be_times_and_texts(base: Base) -> None:
    await base.run("ALTER TABLE orders ADD at timestamptz DEFAULT clock_timestamp(), ADD code text")
    for code in ("a", "a1", "b"):
        await base.run("INSERT INTO orders (note, code) VALUES (%s, %s)", (code, code))
    for key in ("at", "code"):
        source, position, found = base.table(key=key, begin="first"), {"key": None}, list[str]()
        while (page := await poll(source, position, 1)).messages:
            found += notes(page)
            position = dict(page.position)
        assert found == ["a", "a1", "b"]


async def test_a_row_that_commits_late_is_not_passed_over(base: Base) -> None:
    source = base.table(begin="first")
    async with await psycopg.AsyncConnection.connect(base.address) as slow:
        await slow.execute("INSERT INTO orders (note) VALUES ('slow')")  # has the smaller key
        await base.run("INSERT INTO orders (note) VALUES ('quick')")
        page = await poll(source, {"key": None})
        assert (page.messages, page.lag) == ((), 1)
        assert await source.is_woken(), "it looks again soon"
        await base.run("INSERT INTO orders (note) VALUES ('later')")
        assert (await poll(source, {"key": None})).messages == ()
        await slow.commit()
    page = await poll(source, {"key": None})
    assert notes(page) == ["slow", "quick"]
    assert notes(await poll(source, page.position)) == ["later"]


async def test_a_transaction_that_writes_all_the_time_holds_up_nothing_older(base: Base) -> None:
    source = base.table(begin="first")
    await base.run("INSERT INTO orders (note) VALUES ('one')")
    async with await psycopg.AsyncConnection.connect(base.address) as other:
        await other.execute("INSERT INTO orders (note) VALUES ('two')")
        assert (await poll(source, {"key": None})).messages == ()
        await other.commit()
        await other.execute("INSERT INTO orders (note) VALUES ('three')")
        page = await poll(source, {"key": None})
        assert notes(page) == ["one"], "the transaction of that time has ended"
        assert (await poll(source, page.position)).messages == ()
        await other.commit()
    assert notes(await poll(source, page.position)) == ["two"]


async def test_a_channel_wakes_a_table(base: Base) -> None:
    source = base.table(channel="news")
    page = await poll(source, {})
    await base.run("NOTIFY news")
    assert await source.is_woken(), "it listens since the first poll"
    await poll(source, page.position)
    assert not await source.is_woken()


async def test_notifications_arrive_while_it_listens(base: Base) -> None:
    await base.run("NOTIFY news, '{\"n\": 0}'")
    source = base.listen()
    assert (await poll(source, {})).messages == (), "PostgreSQL keeps none for those who come later"
    await base.run("NOTIFY news, '{\"n\": 1}'")
    await base.run("NOTIFY other, '{}'")
    await base.run("NOTIFY news, 'text'")
    page = await poll(source, {}, 1)
    [first] = page.messages
    assert (first.data, first.facts, page.lag, page.more) == ({"n": 1}, {"channel": "news"}, 1, True)
    assert (await poll(source, {}, 1)).messages == (first,), "it was not acknowledged"
    await source.ack(page.messages)
    [second] = (await poll(source, {})).messages
    assert (second.data, "not JSON" in second.problem) == ("text", True)
    plain = base.listen(format="text")
    await poll(plain, {})
    await base.run("NOTIFY news, 'text'")
    assert [one.data for one in (await poll(plain, {})).messages] == ["text"]


async def test_a_lost_connection_is_an_error_and_the_next_one_goes_on(base: Base) -> None:
    for kind in (base.table(begin="first"), base.listen()):
        await poll(kind, {"key": None})
        await base.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'source'")
        with pytest.raises(SourceUnavailable, match="PostgreSQL"):
            await poll(kind, {"key": None})
        await kind.close()
        assert (await poll(kind, {"key": None})).messages == ()


@pytest.mark.parametrize(
    ("fields", "text"), [({"table": "none"}, "does not exist"), ({"key": "none"}, "does not exist")]
)
async def test_a_table_or_column_that_is_not_there_is_an_error(base: Base, fields: dict[str, str], text: str) -> None:
    with pytest.raises(SourceUnavailable, match=text):
        await poll(base.table(**fields), {})
