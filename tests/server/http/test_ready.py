"""`/ready` is 503 exactly while nothing can be written, and says why."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import asyncpg
import httpx
import pytest

from noetl.model.errors import StoreUnavailable
from noetl.server.store_probe import StoreProbe
from noetl.stores.memory.store import MemoryStore
from noetl.stores.postgres.store import PostgresStore
from tests.acceptance.running import until
from tests.server.http.test_serve import run_one
from tests.server.serving import process
from tests.services import postgres


def ready(url: str) -> tuple[int, str]:
    answer = httpx.get(f"{url}/ready", timeout=10)
    return answer.status_code, str(answer.json().get("detail", ""))


def becomes(url: str, status: int) -> str:
    """Wait for a status of `/ready`; return the detail."""
    until(lambda: ready(url)[0] == status, f"{status} of /ready")
    return ready(url)[1]


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, up):
        assert ready(url) == (200, "")
        hard = resource.prlimit(up.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(up.pid, resource.RLIMIT_FSIZE, (0, hard))  # no file may grow: what a full disk is to a process
        assert "noetl.db is unavailable" in becomes(url, 503)
        assert httpx.get(f"{url}/health").status_code == 200
        resource.prlimit(up.pid, resource.RLIMIT_FSIZE, (hard, hard))
        becomes(url, 200)
        assert run_one(url) == "42"


def test_a_store_that_is_deleted_or_moved(tmp_path: Path) -> None:
    home, away = tmp_path / ".noetl", tmp_path / "away"
    with process(tmp_path, "up") as (url, _up):
        becomes(url, 200)
        home.rename(away)
        assert "was deleted, moved or replaced while in use" in becomes(url, 503)
        away.rename(home)
        becomes(url, 200)
        for file in home.glob("noetl.db*"):
            if file.is_file():
                file.unlink()
        assert "was deleted, moved or replaced while in use" in becomes(url, 503)


def test_a_database_that_is_read_only(tmp_path: Path) -> None:
    with postgres() as address, process(tmp_path, "serve", "--store", address) as (url, _server):
        becomes(url, 200)
        asyncio.run(_make_read_only(address, "on"))
        assert "read-only" in becomes(url, 503)
        asyncio.run(_make_read_only(address, "off"))
        becomes(url, 200)


async def _make_read_only(address: str, value: str) -> None:
    """Change what new sessions may do, and end the others."""
    connection = await asyncpg.connect(address, server_settings={"default_transaction_read_only": "off"})
    await connection.execute(f"ALTER DATABASE postgres SET default_transaction_read_only = {value}")
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'noetl' AND pid <> pg_backend_pid()"
    )
    await connection.close()


@pytest.mark.asyncio
async def test_a_role_that_may_not_write() -> None:
    with postgres() as address:
        store = PostgresStore(address)
        await store.probe()
        await store.close()
        connection = await asyncpg.connect(address)
        await connection.execute("CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA noetl TO reader")
        await connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA noetl TO reader")
        await connection.close()
        store = PostgresStore(address.replace("noetl@", "reader@"))
        with pytest.raises(
            StoreUnavailable, match=r"its user lacks a permission \(permission denied for table probe\)"
        ):
            await store.probe()
        assert await store.read("1") == []
        await store.close()


class Slow(MemoryStore):
    """Store whose writes wait for an event."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.go = asyncio.Event()

    async def probe(self) -> None:
        self.writes += 1
        await self.go.wait()


@pytest.mark.asyncio
async def test_callers_at_once_share_one_write() -> None:
    store = Slow()
    probe = StoreProbe(store)
    asking = [asyncio.create_task(probe.check()) for _ in range(50)]
    await asyncio.sleep(0)
    store.go.set()
    await asyncio.gather(*asking)
    assert store.writes == 1


@pytest.mark.asyncio
async def test_a_store_that_hangs_is_not_asked_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.server.store_probe._PATIENCE_S", 0.01)
    monkeypatch.setattr("noetl.server.store_probe._FRESH_S", 0.0)
    store = Slow()
    probe = StoreProbe(store)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await probe.check()
    assert store.writes == 1
    store.go.set()
    await probe.check()
