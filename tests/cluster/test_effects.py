"""Effects happen once while workers are killed at random points.

Every item of a loop is sent to a web service, which knows idempotency keys, and written to PostgreSQL in three ways: SQL in
a transactional task, rows for a table in a transactional task, and an upsert by the idempotency key. A dozen kills run by
default, two hundred under `make chaos`. When the test fails it prints its seed and how to run it again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import psycopg
import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.ledger import Ledger
from tests.cluster.load import HEAD, Load, loading, surely, told

pytestmark = pytest.mark.asyncio
ITEMS = 20
_ROW = "{run: '{{ workload.n }}', item: '{{ iter.i }}'}"
_ONCE = "kind: postgres, auth: sink, transactional: true, marker_table: sink.marker"
SINKS = HEAD.format("sinks") + (
    "workflow:\n"
    f"  - step: each\n    loop: {{in: '{{{{ range({ITEMS}) | list }}}}', iterator: i,"
    " spec: {mode: parallel, max_in_flight: 6}}\n"
    "    tool:\n"
    "      - send: {kind: http, method: POST, url: '{{ workload.api }}/do/{{ workload.n }}/{{ iter.i }}'}\n"
    f"      - sql: {{{_ONCE}, commands: ["
    "\"INSERT INTO sink.counted VALUES ('{{ workload.n }}', {{ iter.i }})\","
    " \"UPDATE sink.total SET n = n + 1 WHERE run = '{{ workload.n }}'\"]}\n"
    f"      - add: {{{_ONCE}, table: sink.added, mode: insert, values: {_ROW}}}\n"
    f"      - put: {{kind: postgres, auth: sink, table: sink.upserted, mode: upsert, values: {_ROW}}}\n"
)
MESSAGES = HEAD.format("messages") + (
    "workflow:\n"
    f"  - step: each\n    loop: {{in: '{{{{ range({ITEMS}) | list }}}}', iterator: i,"
    " spec: {mode: parallel, max_in_flight: 6}}\n"
    "    tool:\n"
    "      - tell: {kind: outbox, topic: t, url: '{{ workload.api }}/flaky/{{ workload.n }}/{{ iter.i }}', payload: {a: 1}}\n"
    "      - both: {kind: postgres, auth: sink, transactional: true, marker_table: sink.marker, commands: ["
    "\"INSERT INTO sink.counted VALUES ('{{ workload.n }}', {{ iter.i }})\","
    " \"INSERT INTO noetl.outbox (key, address, payload) VALUES ('{{ _idempotency_key }}',"
    " '{{ workload.api }}/do/{{ workload.n }}/{{ iter.i }}', '{}')\"]}\n"
)
_TABLES = """
CREATE SCHEMA IF NOT EXISTS sink;
CREATE TABLE IF NOT EXISTS sink.counted (run text, item int);
CREATE TABLE IF NOT EXISTS sink.added (run text, item int);
CREATE TABLE IF NOT EXISTS sink.upserted (idempotency_key text PRIMARY KEY, run text, item int);
CREATE TABLE IF NOT EXISTS sink.total (run text PRIMARY KEY, n int)
"""
_HELD_PER_KILL = 0.4  # seconds, about: a worker that is always dead does nothing that could be cut short


_WAITING = "SELECT number, state, error, attempts, available_at FROM noetl.outbox WHERE state <> 'delivered'"


async def _open(system: Cluster) -> psycopg.AsyncConnection[tuple[object, ...]]:
    return await psycopg.AsyncConnection.connect(system.database, autocommit=True)


async def _start(load: Load, executions: dict[str, str]) -> None:
    """Start one more execution, with its row in the table of totals."""
    key = f"run-{len(executions)}-{id(executions)}"
    async with await _open(load.system) as connection:
        await connection.execute("INSERT INTO sink.total VALUES (%s, 0)", [key])
    given = {"api": load.ledger.url, "n": key}
    started = await surely(lambda: load.clients[0].execute("faults/sinks", given, idempotency_key=key))
    executions[started.execution_id] = load.others[started.execution_id] = key


async def _running(load: Load, executions: dict[str, str]) -> int:
    statuses = await asyncio.gather(*(load.status(one) for one in list(executions)[-4:]))
    return sum(status not in ("completed", "failed") for status in statuses)


async def _effect(book: Ledger) -> None:
    """Wait for the next request to the service, so that a task is in flight."""
    before = sum(map(len, list(book.asked.values())))
    async with asyncio.timeout(1):
        while sum(map(len, list(book.asked.values()))) == before:
            await asyncio.sleep(0.002)


async def _shake(load: Load, chance: Random, kills: int) -> dict[str, str]:
    executions: dict[str, str] = {}
    for _ in range(kills):
        while await _running(load, executions) < 2:
            await _start(load, executions)
        await asyncio.sleep(chance.uniform(0, _HELD_PER_KILL))
        if chance.random() < 0.7:
            try:
                await _effect(load.ledger)
            except TimeoutError:
                continue  # all of them were dead: nothing to cut short
        await asyncio.sleep(chance.uniform(0, 0.04))
        victim = chance.choice(load.system.working)
        victim.kill()
        victim.start()
    return executions


async def _rows(system: Cluster, table: str, run: str) -> Counter[object]:
    async with await _open(system) as connection:
        found = await connection.execute(f"SELECT item FROM sink.{table} WHERE run = %s".encode(), [run])
        return Counter(row[0] for row in await found.fetchall())


@pytest.mark.parametrize(("seed", "kills"), [(1, 12), pytest.param(2, 200, marks=pytest.mark.chaos)])
async def test_each_effect_happens_once_while_workers_are_killed(
    shaken: Cluster, book: Ledger, seed: int, kills: int
) -> None:
    async with await _open(shaken) as connection:
        await connection.execute(_TABLES.encode())
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            await load.register(SINKS)
            await load.clients[0].put_credential("sink", {"dsn": shaken.database}, "postgres")
            executions = await _shake(load, Random(seed), kills)
            statuses = await load.ended()
            assert set(statuses.values()) == {"completed"}, statuses
            once, repeated = dict.fromkeys(range(ITEMS), 1), 0
            for run in executions.values():
                for table in ("counted", "added", "upserted"):
                    assert await _rows(shaken, table, run) == once, f"{table} of {run}"
                async with await _open(shaken) as connection:
                    total = await connection.execute("SELECT n FROM sink.total WHERE run = %s", [run])
                    assert await total.fetchone() == (ITEMS,)
                asked = [book.asked[f"/do/{run}/{item}"] for item in range(ITEMS)]
                assert all(len(set(keys)) == 1 and keys[0] for keys in asked), asked
                repeated += sum(len(keys) - 1 for keys in asked)
            print(f"seed {seed}: {kills} kills, {len(executions) * ITEMS} items, {repeated} requests were sent again")
            await load.hold()


async def _all_delivered(system: Cluster) -> None:
    """Wait until no message waits, for as long as some are delivered."""
    clock = asyncio.get_running_loop()
    best, since = 10**9, clock.time()
    async with await _open(system) as connection:
        while left := await (await connection.execute(_WAITING)).fetchall():
            assert not [row for row in left if row[1] != "pending"], left
            if len(left) < best:
                best, since = len(left), clock.time()
            assert clock.time() - since < 60, f"{len(left)} messages are not delivered: {left[:5]}"
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("seed", "kills"), [(1, 3), pytest.param(2, 40, marks=pytest.mark.chaos)])
async def test_messages_arrive_while_servers_and_workers_are_killed(
    shaken: Cluster, book: Ledger, seed: int, kills: int
) -> None:
    """Each message is stored once with its transaction and delivered under one key."""
    chance = Random(seed)
    async with await _open(shaken) as connection:
        await connection.execute(_TABLES.encode())
    with told(shaken, seed):
        async with loading(shaken, book) as load:
            await load.register(MESSAGES)
            await load.clients[0].put_credential("sink", {"dsn": shaken.database}, "postgres")
            runs = {}
            for _ in range(kills):
                started = await load.other("messages")
                runs[started] = load.others[started]
                await asyncio.sleep(chance.uniform(0, 1))
                victim = chance.choice([*shaken.serving, *shaken.working])
                victim.kill()
                victim.start()
            statuses = await load.ended()
            assert set(statuses.values()) == {"completed"}, statuses
            await _all_delivered(shaken)
            for run in runs.values():
                assert await _rows(shaken, "counted", run) == dict.fromkeys(range(ITEMS), 1)
                for how in ("flaky", "do"):
                    asked = [book.asked[f"/{how}/{run}/{item}"] for item in range(ITEMS)]
                    assert all(keys and len(set(keys)) == 1 for keys in asked), asked
            await load.hold()
