"""What a step and an execution cost on a cluster, in numbers that do not depend on the machine: commits, frames, questions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noetl.client.links import SocketLink
from noetl.stores.postgres_database import PostgresDatabase
from tests.client.working import working
from tests.databases import fresh_database
from tests.server.serving import ONE, listening, playbook

pytestmark = pytest.mark.asyncio
STEPS = 20
ROW = "".join(
    f"  - step: s{number}\n    tool: {{kind: noop}}\n" + (f"    next: s{number + 1}\n" if number + 1 < STEPS else "")
    for number in range(STEPS)
)


def commits(address: str) -> int:
    """Give how many batches were committed so far."""
    with psycopg.connect(address, autocommit=True) as connection:
        [number] = connection.execute("SELECT sum(commits) FROM noetl.writer").fetchone() or (0,)
        return int(number)


async def test_a_step_in_a_row_is_one_commit_and_one_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start hands the first step out; every report ends a step, and its answer brings the next one."""
    sent: Counter[str] = Counter()
    send = SocketLink.send

    async def counted(link: SocketLink, frame: Any) -> None:
        sent[type(frame).__name__] += 1
        await send(link, frame)

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
        started = await served.json("POST", "/api/execute", {"path": path})
        answer = await served.http.get(f"/api/executions/{started['execution_id']}/events/stream")
        assert answer.text.endswith("event: end\ndata: {}\n\n")
        assert (asked["find_version"], asked["find_execution"]) == (1, 1)
        assert asked["read_events"] in (1, 2)  # what is there when it is asked, and the rest
