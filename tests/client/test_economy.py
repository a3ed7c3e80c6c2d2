"""Cost of a step on a cluster: commits, frames, round trips, rows, bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from bench.limits import written
from noetl.client.links import SocketLink
from noetl.stores.common.queries import queries
from noetl.stores.postgres.database import PostgresDatabase
from tests.client.working import working
from tests.databases import fresh_database
from tests.server.serving import ONE, Served, listening, playbook

pytestmark = pytest.mark.asyncio
STEPS = 20
ROW = "".join(
    f"  - step: s{number}\n    tool: {{kind: noop}}\n" + (f"    next: s{number + 1}\n" if number + 1 < STEPS else "")
    for number in range(STEPS)
)


def commits(address: str) -> int:
    """Return the number of batches committed so far."""
    with psycopg.connect(address, autocommit=True) as connection:
        [number] = connection.execute("SELECT sum(commits) FROM noetl.writer").fetchone() or (0,)
        return int(number)


async def test_a_step_in_a_row_is_one_commit_and_one_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start leases the first step; the answer to each report brings the next."""
    sent: Counter[str] = Counter()
    send = SocketLink.send

    def counted(link: SocketLink, frame: Any) -> None:
        sent[type(frame).__name__] += 1
        send(link, frame)

    monkeypatch.setattr(SocketLink, "send", counted)
    address = fresh_database()
    async with listening(tmp_path, database=address) as served, working(tmp_path, served.url):
        await served.until(await served.start(playbook(ROW)), "completed")  # a worker is there, and waits
        before = commits(address)
        sent.clear()
        await served.until(await served.start(playbook(ROW)), "completed")
        assert (commits(address) - before, sent["Report"]) == (1 + STEPS, STEPS)


async def test_an_execution_that_is_followed_asks_the_database_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    rows = PostgresDatabase.rows

    async def counted(database: PostgresDatabase, name: str, *given: Any) -> list[Any]:
        asked[name] += 1
        return await rows(database, name, *given)

    address = fresh_database()
    async with listening(tmp_path, database=address) as served, working(tmp_path, served.url):
        path = await served.register(ONE)
        monkeypatch.setattr(PostgresDatabase, "rows", counted)
        await _followed(served, path)
        assert (asked["find_content_hash"], asked["find_version"], asked["find_execution"]) == (1, 0, 1)
        assert asked["read_events"] in (1, 2)  # what is there when it is asked, and the rest


async def test_a_step_is_one_round_trip_to_the_database_and_seven_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts every query while an execution runs and is followed."""
    asked: Counter[str] = Counter()
    names = {text: name for name, text in queries("postgres").items()}
    for method in ("fetch", "fetchrow", "fetchval", "execute", "executemany"):
        _count(monkeypatch, method, lambda text: asked.update([names.get(text, text)]))
    address = fresh_database()
    async with listening(tmp_path, database=address) as served, working(tmp_path, served.url):
        path = await served.register(playbook(ROW))
        await _followed(served, path)  # everything is prepared from here on, and a worker waits
        asked.clear()
        before = written(address)
        started = await _followed(served, path)
        wrote = written(address).since(before)
        rows = len(await served.embedded.store.read(started))
    assert (wrote.commits, rows) == (1 + STEPS, 7 + 7 * STEPS)
    assert wrote.size <= 1_600 * STEPS
    assert asked.pop("commit_batch") == 1 + STEPS
    for paced in ("SELECT pg_notify($1, '')", "read_events"):  # by time, and at most once for what a commit brings
        assert asked.pop(paced, 0) <= 1 + STEPS
    assert max(asked.values()) < STEPS, (
        asked
    )  # background tasks ask by time; nothing depends on how many steps there are


async def _followed(served: Served, path: str) -> str:
    """Run an execution to its end; gives its id."""
    started = str((await served.json("POST", "/api/execute", {"path": path}))["execution_id"])
    answer = await served.http.get(f"/api/executions/{started}/events/stream")
    assert answer.text.endswith("event: end\ndata: {}\n\n")
    return started


def _count(monkeypatch: pytest.MonkeyPatch, method: str, note: Callable[[str], None]) -> None:
    plain = getattr(asyncpg.Connection, method)

    async def counted(connection: Any, text: str, *given: Any, **more: Any) -> Any:
        note(text)
        return await plain(connection, text, *given, **more)

    monkeypatch.setattr(asyncpg.Connection, method, counted)
