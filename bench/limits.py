"""Measure the machine's limits: a flush, a loop of additions, and bare commits.

The commits append as many bytes in as many transactions as a run did, with the driver of its store (`sqlite3` or `asyncpg`),
one connection and one row per commit: the least that any engine on this store needs. Tested in tests/bench/test_limits.py.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

_CHANGES_AT = 8  # of the header of the WAL index: transactions written so far
_MOST_COMMITS = 2_000  # of a bare loop; beyond, a part is timed


@dataclass(frozen=True)
class Written:
    """What a store holds: transactions that wrote, and bytes of events."""

    commits: int
    size: int

    def since(self, before: Written) -> Written:
        return Written(self.commits - before.commits, self.size - before.size)


def flush_ms(folder: str | Path, count: int = 50, size: int = 2_000) -> float:
    """Return the median time of a small durable write."""
    times = []
    with (Path(folder) / f"flush-{uuid4().hex}").open("ab") as file:
        for _ in range(count):
            file.write(b"x" * size)
            file.flush()
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def spin_ms(count: int = 300_000) -> float:
    """Return the time of a loop of additions: the processor's speed right now."""
    begun, total = time.perf_counter(), 0
    for number in range(count):
        total += number
    return (time.perf_counter() - begun) * 1000


def is_database(store: str) -> bool:
    return store.startswith("postgresql://")


def written(store: str) -> Written:
    """Look at a store that is in use."""
    return _written_postgres(store) if is_database(store) else _written_sqlite(store)


def _written_sqlite(path: str) -> Written:
    connection = sqlite3.connect(path)
    try:
        [size] = connection.execute("SELECT coalesce(sum(length(events)), 0) FROM event_log").fetchone()
        # Read after the query, which has opened the index, and before it is closed.
        header = Path(f"{path}-shm").read_bytes()[_CHANGES_AT : _CHANGES_AT + 4]
    finally:
        connection.close()
    return Written(struct.unpack("=I", header)[0], size)


def _written_postgres(address: str) -> Written:
    import psycopg

    query = (
        "SELECT (SELECT coalesce(sum(commits), 0) FROM noetl.writer), "
        "(SELECT coalesce(sum(pg_column_size(e)), 0) FROM noetl.log AS e)"
    )
    with psycopg.connect(address) as connection:
        commits, size = connection.execute(query).fetchone() or (0, 0)
        return Written(int(commits), int(size))


def bare_seconds(store: str, wrote: Written, folder: str) -> float:
    """Return the seconds of a bare loop with the same bytes, commits and store."""
    count = max(1, min(wrote.commits, _MOST_COMMITS))
    row = os.urandom(max(1, wrote.size // max(1, wrote.commits)))
    took = asyncio.run(_bare_postgres(store, count, row)) if is_database(store) else _bare_sqlite(folder, count, row)
    return took * wrote.commits / count


def _bare_sqlite(folder: str, count: int, row: bytes) -> float:
    connection = sqlite3.connect(Path(folder) / f"bare-{uuid4().hex}.db", isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE bare (number INTEGER PRIMARY KEY, data BLOB)"
    )
    begun = time.perf_counter()
    for _ in range(count):
        connection.execute("INSERT INTO bare (data) VALUES (?)", (row,))
    took = time.perf_counter() - begun
    connection.close()
    return took


async def _bare_postgres(address: str, count: int, row: bytes) -> float:
    import asyncpg

    connection = await asyncpg.connect(address)
    try:
        await connection.execute("CREATE TABLE bare (number bigint PRIMARY KEY, data bytea)")
        await connection.execute("INSERT INTO bare VALUES ($1, $2)", -1, row)  # prepared from here on
        begun = time.perf_counter()
        for number in range(count):
            await connection.execute("INSERT INTO bare VALUES ($1, $2)", number, row)
        took = time.perf_counter() - begun
        await connection.execute("DROP TABLE bare")
    finally:
        await connection.close()
    return took
