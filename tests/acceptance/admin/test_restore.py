"""A restored backup asks before it repeats effects."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from noetl.ports.outbox import OutboxMessage
from noetl.settings import Settings
from noetl.wiring.embedded import open_store
from noetl.wiring.outbox import open_outbox
from tests.acceptance.run import Ran, noetl
from tests.acceptance.running import until
from tests.acceptance.servers.test_up_killed import completed, count, start
from tests.server.serving import ONE, PATIENCE_S, playbook, process
from tests.services import postgres_server

SLEEPY = playbook("  - step: rest\n    tool: { kind: sleep, seconds: 3600 }\n", "sleepy")


def done(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    return ran.out


def begin(url: str, content: str) -> str:
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        path = client.post("/api/catalog", json={"content": content}).json()["path"]
        return str(client.post("/api/execute", json={"path": path}).json()["execution_id"])


def test_a_restored_backup_asks_before_it_repeats_effects(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, up):
        running, sleeping = start(url, tmp_path), begin(url, SLEEPY)
        timed = {"name": "yearly", "path": "test/sleepy", "cron": "0 0 1 1 *"}
        assert httpx.post(f"{url}/api/schedules", json=timed).status_code == 201
        done(noetl("admin", "backup", "old.db", cwd=tmp_path))
        (tmp_path / "open").touch()
        completed(url, running)  # effects that the backup does not know
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0
    assert count(tmp_path, "ended") == 1
    (tmp_path / ".noetl" / "noetl.db").rename(tmp_path / "lost.db")
    told = done(noetl("admin", "restore", "old.db", cwd=tmp_path))
    assert "held 2 executions and 0 outbox messages for review" in told
    assert "paused 1 schedules; resume each with `noetl schedule resume NAME`" in told
    with process(tmp_path, "up") as (url, _up):
        assert httpx.get(f"{url}/api/schedules/yearly").json()["paused"]
        completed(url, begin(url, ONE))  # what is new runs
        with closing(sqlite3.connect(tmp_path / ".noetl" / "noetl.db")) as connection:
            assert connection.execute("SELECT count(*) FROM timer").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM queue").fetchone() == (0,)
        for execution_id in (running, sleeping):
            explained = done(noetl("explain", execution_id, cwd=tmp_path))
            assert "restored from a backup" in explained
            assert f"`noetl unpause {execution_id}`" in explained
            assert httpx.get(f"{url}/api/executions/{execution_id}").json()["status"] == "paused"
        assert done(noetl("admin", "rebuild", "--check", cwd=tmp_path)) == "all projections match the event log\n"
        done(noetl("unpause", running, "--server", url, cwd=tmp_path))
        completed(url, running)
        done(noetl("cancel", sleeping, "--server", url, cwd=tmp_path))
        until(lambda: httpx.get(f"{url}/api/executions/{sleeping}").json()["status"] == "cancelled", "the cancel")
    assert (count(tmp_path, "started"), count(tmp_path, "ended")) == (2, 2)


def test_a_backup_that_is_only_copied_into_place_is_not_continued(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, up):
        running = start(url, tmp_path)
        done(noetl("admin", "backup", "old.db", cwd=tmp_path))
        up.kill()
        up.wait()
    for file in (tmp_path / ".noetl").glob("noetl.db*"):
        if file.is_file():
            file.unlink()
    (tmp_path / "old.db").rename(tmp_path / ".noetl" / "noetl.db")
    ran = noetl("up", "--port", "0", cwd=tmp_path)
    assert ran.code == 2
    assert "is a backup" in ran.err
    assert "`noetl admin restore " in ran.err
    assert running in done(noetl("runs", cwd=tmp_path))  # it can be looked at
    assert "held 1 executions" in done(noetl("admin", "restore", cwd=tmp_path))
    assert "held 0 executions" in done(noetl("admin", "restore", cwd=tmp_path))  # it is harmless to repeat
    explained = json.loads(done(noetl("explain", running, "--json", cwd=tmp_path)))
    assert "restored from a backup" in explained["standing"][0]["waits_for"]


@pytest.mark.parametrize("copied", [False, True], ids=["from a file", "copied into place"])
def test_the_log_of_another_store_is_not_replayed_into_a_backup(tmp_path: Path, copied: bool) -> None:
    store, backup = tmp_path / ".noetl" / "noetl.db", tmp_path / "old.db"
    with process(tmp_path, "up") as (url, up):
        running = start(url, tmp_path)
        done(noetl("admin", "backup", "old.db", cwd=tmp_path))
        (tmp_path / "open").touch()
        completed(url, running)
        up.kill()  # so its log stays
        up.wait()
    log = Path(f"{store}-wal")
    assert log.stat().st_size > 0
    store.unlink()
    if copied:
        backup.rename(store)
    before = log.read_bytes()
    ran = noetl("admin", "restore", *(() if copied else ("old.db",)), cwd=tmp_path)
    assert ran.code == 2, ran.out
    assert "would be replayed into the restored store" in ran.err
    assert "noetl.db-wal" in ran.err
    assert (log.read_bytes(), store.exists()) == (before, copied)
    for name in ("-wal", "-shm"):
        Path(f"{store}{name}").unlink(missing_ok=True)
    Path(f"{store}-journal").touch()
    assert noetl("admin", "restore", *(() if copied else ("old.db",)), cwd=tmp_path).code == 2
    Path(f"{store}-journal").unlink()
    assert "held 1 executions" in done(noetl("admin", "restore", *(() if copied else ("old.db",)), cwd=tmp_path))


def test_a_restored_database_asks_before_it_repeats_effects(tmp_path: Path) -> None:
    with postgres_server() as server:
        with process(tmp_path, "up", "--postgres", server.address()) as (url, up):
            running = start(url, tmp_path)
            dump = server.dump()
            up.kill()
            up.wait()
        server.create("again")
        server.load(dump, "again")
        address = server.address("again")
        assert "held 1 executions" in done(noetl("admin", "restore", "--store", address, cwd=tmp_path))
        (tmp_path / "open").touch()
        with process(tmp_path, "up", "--postgres", address) as (url, _up):
            explained = done(noetl("explain", running, "--store", address, cwd=tmp_path))
            assert f"`noetl unpause {running}`" in explained
            assert count(tmp_path, "started") == 1
            done(noetl("unpause", running, "--server", url, cwd=tmp_path))
            completed(url, running)
        assert count(tmp_path, "started") == 2
        checked = noetl("db", "check", "--deep", "--db", address, cwd=tmp_path)
        assert checked.code == 0, checked.out


@pytest.mark.asyncio
async def test_messages_and_epochs_of_a_restored_store(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "noetl.db")
    store = open_store(settings)
    await open_outbox(store).put(OutboxMessage("k", address="http://127.0.0.1:1/"), 5)
    await store.close()
    assert "held 0 executions and 1 outbox" in done(noetl("admin", "restore", "--store", str(settings.store)))
    store = open_store(settings)
    [message] = await open_outbox(store).messages(None, None, 9)
    assert (message.state, "restored from a backup" in message.error) == ("dead", True)
    await store.close()
    with closing(sqlite3.connect(settings.store)) as connection:
        assert connection.execute("SELECT value FROM counter WHERE name = 'epoch'").fetchone()[0] >= 2**32
