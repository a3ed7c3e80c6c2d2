"""The ways in which a batch is committed to a SQLite file give the same rows and the same answers."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from noetl.model.work import Lease
from noetl.ports import Claim, Commit, Receipt
from noetl.stores import sqlite_commit
from noetl.stores.sqlite import SqliteStore
from tests.conformance.commits import commit, work

pytestmark = pytest.mark.asyncio
_TABLES = ("event_log", "execution", "queue")


class Game:
    """Executions of a few steps, whose messages come in batches; some are late, come twice, or are about an old state."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lengths: dict[str, int] = {}
        self._held: list[Lease] = []
        self._sent: list[Commit] = []
        self._started = 0

    def batch(self) -> tuple[list[Commit], list[Claim]]:
        chance = self._random
        made = [self._start() for _ in range(chance.choice((0, 1, 1, 5)))]
        chance.shuffle(self._held)
        count = chance.choice((0, 1, 1, 6))
        made += [self._report(lease) for lease in self._held[:count]]
        del self._held[:count]
        if self._sent and chance.random() < 0.2:
            made.insert(chance.randrange(len(made) + 1), chance.choice(self._sent))
        self._sent += made
        pools = chance.choice((("",), ("",), ("gpu",), ("", "gpu")))
        claims = [Claim(f"w{n}", pools, chance.randrange(3), 10, 20) for n in range(chance.choice((0, 1, 2, 6)))]
        return made, claims

    def told(self, receipt: Receipt) -> None:
        for one in receipt.commits:
            self._lengths[one.execution_id] = max(one.last_seq, self._lengths.get(one.execution_id, 0))
        self._held += [lease for found in receipt.leases for lease in found]

    def _start(self) -> Commit:
        self._started += 1
        return self._made(f"{self._started}", 0, (), "running")

    def _report(self, lease: Lease) -> Commit:
        name, late = lease.work.execution_id, self._random.random() < 0.1
        held = ((lease.work.work_id, lease.epoch - late),)
        at = self._lengths[name] - (self._random.random() < 0.1)
        return self._made(name, at, held, self._random.choice(("running", "running", "completed")))

    def _made(self, name: str, at: int, held: tuple[tuple[str, int], ...], status: str) -> Commit:
        row: dict[str, Any] = {"status": status, "path": "p", "started_at": 5} | (
            {"ended_at": 9} if status[0] == "c" else {}
        )
        count = 0 if status[0] == "c" else self._random.choice((1, 1, 2))
        pool = self._random.choice(("", "", "gpu"))
        follows = tuple(
            work(f"{at}-{n}", execution=name, pool=pool, priority=self._random.randrange(2)) for n in range(count)
        )
        message = f"{name}/0" if self._random.random() < 0.1 else ""  # that of its start: it was applied
        return commit(name, at, self._random.choice((1, 3)), message, finished=held, work=follows, projection=row)


async def _played(path: Path, seed: int) -> tuple[list[Receipt], list[Any]]:
    store, game = SqliteStore(path), Game(seed)
    receipts = []
    for _ in range(40):
        receipts.append(await store.commit(*game.batch()))
        game.told(receipts[-1])

    def everything(connection: sqlite3.Connection) -> list[Any]:
        return [connection.execute(f"SELECT * FROM {name}").fetchall() for name in _TABLES]

    rows = await store.database.run(everything)
    await store.close()
    return receipts, rows


@pytest.mark.parametrize("seed", range(12))
async def test_all_ways_lead_to_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    receipts, rows = await _played(tmp_path / "plain.db", seed)
    statuses = {one.status for receipt in receipts for one in receipt.commits}
    assert statuses == {"applied", "stale", "duplicate", "fenced"}
    monkeypatch.setattr(sqlite_commit, "are_plain", lambda commits: False)
    monkeypatch.setattr(sqlite_commit, "commit_step", lambda *given: None)
    judged = await _played(tmp_path / "judged.db", seed)
    assert judged[0] == receipts
    assert judged[1][:2] == rows[:2]
    assert sorted(judged[1][2]) == sorted(rows[2])
