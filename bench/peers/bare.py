"""The same work in a plain script: no queue, no log, nothing survives its end.

What a side needs beyond it is what durability costs there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import duckdb
import psycopg
from psycopg_pool import AsyncConnectionPool

from bench.peers.side import (
    AT_ONCE,
    CREATE,
    CREATE_SALES,
    INSERT,
    SOLD,
    Given,
    Seen,
    add,
    cost_of,
    given,
    measure,
    seconds,
    total,
    write_sales,
)
from bench.peers.web import web_server


def r1(told: Given) -> Seen:
    def in_a_row() -> None:
        number = 0
        for _ in range(told.size):
            number = add(number)
            if number < 0:
                raise ValueError("it cannot be")

    return cost_of(in_a_row)


async def _each(size: int, job: Callable[[int], Awaitable[None]]) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with room:
            await job(number)

    await asyncio.gather(*map(one, range(size)))


async def _fetch(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as answer:
        return total(await answer.json())


def r2(told: Given) -> Seen:
    async def fetch_all(url: str) -> None:
        async with aiohttp.ClientSession() as session:

            async def job(number: int) -> None:
                await _fetch(session, f"{url}/item/{number}")

            await _each(told.size, job)

    with web_server() as url:
        return cost_of(lambda: asyncio.run(fetch_all(url)))


def r3(told: Given) -> Seen:
    async def save_all(url: str) -> None:
        pool = AsyncConnectionPool(told.database, min_size=4, max_size=10, open=False)
        async with pool, aiohttp.ClientSession() as session:

            async def job(number: int) -> None:
                found = await _fetch(session, f"{url}/item/{number}")
                async with pool.connection() as connection:
                    await connection.execute(INSERT, (found,))

            await _each(told.size, job)

    with psycopg.connect(told.database, autocommit=True) as connection:
        connection.execute(CREATE)
    with web_server() as url:
        return cost_of(lambda: asyncio.run(save_all(url)))


def r4(told: Given) -> Seen:
    return {"times": [seconds(lambda: add(1)) for _ in range(told.size)]}


def r5(told: Given) -> Seen:
    return cost_of(lambda: [add(number) for number in range(told.size)])


def r6(told: Given) -> Seen:
    path = told.folder / "whole.csv"
    rows = write_sales(path, told.size)

    def load() -> None:
        with duckdb.connect() as source, psycopg.connect(told.database) as target, target.cursor() as cursor:
            source.execute(SOLD.format(path=path))
            with cursor.copy("COPY sales FROM STDIN") as copy:
                while found := source.fetchmany(10_000):
                    for row in found:
                        copy.write_row(row)

    with psycopg.connect(told.database, autocommit=True) as connection:
        connection.execute(CREATE_SALES)
        seen = cost_of(load)
        assert connection.execute("SELECT count(*) FROM sales").fetchone() == (rows,)
    return seen


if __name__ == "__main__":
    measure(given(), {"R1": r1, "R2": r2, "R3": r3, "R4": r4, "R5": r5, "R6": r6})
