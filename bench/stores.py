"""Measure the stores: commits of one step, and batches of a hundred.

    python bench/stores.py [--json] [--db URL] [--steps 400] [--batches 30]

A step's commit is six events, one piece of work put and one finished, and the claim of the new one. Without `--db` the
PostgreSQL store is skipped. Wall times of durable stores depend on the disk, so compare them with the bare loop that writes
the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from noetl.model.events import Event
from noetl.model.ids import event_id, snowflake
from noetl.model.work import WorkItem
from noetl.ports import Claim, Commit
from noetl.stores.memory.store import MemoryStore
from noetl.stores.postgres.database import connect
from noetl.stores.postgres.store import PostgresStore
from noetl.stores.sqlite.store import SqliteStore

EVENTS, WIDE = 6, 100
NOW = int(time.time() * 1000)
Held = tuple[tuple[str, int], ...]


def step(execution_id: str, number: int, held: Held) -> Commit:
    at = number * EVENTS
    events = tuple(
        Event(
            event_id(f"{execution_id}/{number}", place), execution_id, at + 1 + place, "step.done", NOW, "server", "step", "s",
            step_run_id=f"s{number}#1", status="ok", payload={"result": {"n": number, "text": "x" * 40}},
        )
        for place in range(EVENTS)
    )  # fmt: skip
    name = f"{execution_id}:s{number}#1"
    work = WorkItem(name, execution_id, f"s{number}#1", "s", 1, "hash", {"ctx": {"n": number}, "args": {}})
    row = {"status": "running", "path": "bench/stores", "started_at": NOW, "seq": at + EVENTS}
    return Commit(execution_id, at, events, (work,), held, projection=row)


async def steps(store: Any, first: int, count: int, wide: int) -> None:
    """Commit `count` batches, each one step of `wide` executions."""
    held: dict[str, Held] = dict.fromkeys((snowflake(NOW, 1, first + place) for place in range(wide)), ())
    for number in range(count):
        claim = Claim("bench", ("",), wide, NOW, NOW + 30_000)
        receipt = await store.commit([step(name, number, found) for name, found in held.items()], [claim])
        assert all(done.status == "applied" for done in receipt.commits)
        held = {lease.work.execution_id: ((lease.work.work_id, lease.epoch),) for lease in receipt.leases[0]}
        assert len(held) == wide


async def measured(job: Callable[[], Awaitable[None]], count: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    await job()
    return {
        "wall_ms": round((time.perf_counter() - wall) * 1000 / count, 3),
        "cpu_ms": round((time.process_time() - cpu) * 1000 / count, 3),
    }


async def bare_postgres(url: str, count: int, rows: int) -> None:
    connection = await connect(url)
    await connection.execute("DROP TABLE IF EXISTS bare; CREATE TABLE bare (a bigint, b bigint, payload text)")
    given = [1] * rows, list(range(rows)), ["x" * 250] * rows
    text = "INSERT INTO bare SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])"
    for _ in range(count):
        await connection.execute(text, *given)
    await connection.execute("DROP TABLE bare")
    await connection.close()


async def bare_sqlite(path: Path, count: int, rows: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS b (a, b, c)"
    )
    for _ in range(count):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO b VALUES (?, ?, ?)", [(1, place, "x" * 250) for place in range(rows)])
        connection.execute("COMMIT")
    connection.close()


async def bare_file(path: Path, count: int, rows: int) -> None:
    with path.open("ab") as file:
        for _ in range(count):
            file.write(b"x" * 250 * rows)
            file.flush()
            os.fdatasync(file.fileno())


async def compare(name: str, store: Any, bare: Callable[[int, int], Awaitable[None]], given: Any) -> dict[str, Any]:
    await steps(store, 0, 10, 1)  # everything is opened and prepared
    found = {
        "one step": await measured(lambda: steps(store, 10, given.steps, 1), given.steps),
        "the same bytes, bare": await measured(lambda: bare(given.steps, EVENTS + 2), given.steps),
        "a hundred steps": await measured(lambda: steps(store, 1_000, given.batches, WIDE), given.batches),
        "the same bytes, bare, a hundred": await measured(
            lambda: bare(given.batches, (EVENTS + 2) * WIDE), given.batches
        ),
    }
    await store.close()
    return {"store": name, **found}


async def main(given: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        results = [
            await compare("memory", MemoryStore(), lambda *size: bare_file(place / "bare", *size), given),
            await compare(
                "sqlite", SqliteStore(place / "x.db"), lambda *size: bare_sqlite(place / "b.db", *size), given
            ),
        ]
    if given.db:
        results.append(
            await compare("postgres", PostgresStore(given.db), lambda *size: bare_postgres(given.db, *size), given)
        )
    if given.json:
        print(json.dumps(results))
        return
    for result in results:
        print(result.pop("store"))
        for name, times in result.items():
            print(f"  {name:34} {times['wall_ms']:9.3f} ms wall {times['cpu_ms']:9.3f} ms CPU here")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--db", default=os.environ.get("NOETL_DB_URL", ""))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batches", type=int, default=30)
    asyncio.run(main(parser.parse_args()))
