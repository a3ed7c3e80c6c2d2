"""A killed `noetl up` that is started again goes on at once, and spares others."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from noetl.cli.runtime.driver_lock import killed_workers, worker_lock
from noetl.client.local_server import local_server
from noetl.settings import Settings
from tests.acceptance.running import until
from tests.cluster.process import Process
from tests.databases import empty_database
from tests.server.serving import PATIENCE_S, playbook, process
from tests.services import free_port

LONG = {"NOETL_LEASE_SECONDS": "3600"}  # what does not go on at once fails by the test's patience
GATED = """  - step: gate
    tool:
      kind: {}
      {}
"""
CODE = "echo x >> started; while [ ! -e open ]; do sleep 0.01; done; echo x >> ended"
SHELL = playbook(GATED.format("shell", f'command: "{CODE}"'), "gated")
PYTHON = playbook(
    GATED.format("python", f"code: |\n        import subprocess\n        subprocess.run(['sh', '-c', '{CODE}'])\n"),
    "gated",
)
POOLED = SHELL.replace("  - step: gate\n", "  - step: gate\n    spec: { pool: far }\n")


def start(url: str, folder: Path, content: str = SHELL, times: int = 1) -> str:
    """Start an execution, and wait until its task runs; return its id."""
    with httpx.Client(base_url=url, timeout=PATIENCE_S, headers=own_token(url)) as client:
        path = client.post("/api/catalog", json={"content": content}).json()["path"]
        started = str(client.post("/api/execute", json={"path": path}).json()["execution_id"])
    until(lambda: count(folder, "started") >= times, "the start of the task")
    return started


def count(folder: Path, name: str) -> int:
    path = folder / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def completed(url: str, execution_id: str) -> None:
    with httpx.Client(base_url=url, timeout=PATIENCE_S, headers=own_token(url)) as client:
        until(lambda: client.get(f"/api/executions/{execution_id}").json()["status"] == "completed", "the end")


def statuses(url: str) -> list[str]:
    rows = httpx.get(f"{url}/api/workers", timeout=PATIENCE_S, headers=own_token(url)).json()["workers"]
    return sorted(row["status"] for row in rows)


def places(url: str) -> int:
    """Return how many tasks the workers of a server can run at once."""
    found = httpx.get(f"{url}/api/queue", timeout=PATIENCE_S, headers=own_token(url)).json()
    return sum(int(pool["capacity"]) for pool in found["pools"])


def own_token(url: str) -> dict[str, str]:
    """Return the headers for a server that asks for the token of its user."""
    token = local_server(url).token
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def test_the_work_of_a_killed_up_goes_on_at_once(tmp_path: Path) -> None:
    for content in (SHELL, PYTHON):
        for name in ("open", "started"):
            (tmp_path / name).unlink(missing_ok=True)
        with process(tmp_path, "up", environment=LONG) as (url, up):
            started = start(url, tmp_path, content)
            up.kill()
            up.wait()
        with process(tmp_path, "up", environment=LONG) as (url, up):
            until(lambda: count(tmp_path, "started") == 2, "the second start of the task")
            assert statuses(url).count("ready") == 1
            assert places(url) == 32
            (tmp_path / "open").touch()
            completed(url, started)
            up.send_signal(signal.SIGTERM)
            assert up.wait(PATIENCE_S) == 0
        assert list((tmp_path / ".noetl" / "noetl.db.workers").iterdir()) == []


def test_the_work_of_a_killed_up_on_postgresql_goes_on_at_once(tmp_path: Path) -> None:
    with empty_database() as address:
        with process(tmp_path, "up", "--postgres", address, environment=LONG) as (url, up):
            started = start(url, tmp_path)
            up.kill()
            up.wait()
        (tmp_path / "open").touch()
        with process(tmp_path, "up", "--postgres", address, environment=LONG) as (url, _up):
            completed(url, started)
    assert count(tmp_path, "started") == 2


def test_another_up_on_the_same_store_takes_over_from_a_killed_one(tmp_path: Path) -> None:
    with process(tmp_path, "up", environment=LONG) as (url, up):
        started = start(url, tmp_path)
        with process(tmp_path, "up", environment=LONG) as (other, _up):
            until(lambda: len(list((tmp_path / ".noetl" / "noetl.db.workers").iterdir())) == 2, "both locks")
            assert count(tmp_path, "started") == 1  # a live worker keeps its work
            assert statuses(other) == ["ready", "ready"]
            up.kill()
            up.wait()
            until(lambda: count(tmp_path, "started") == 2, "the second start of the task")
            until(lambda: statuses(other) == ["gone", "ready"], "the end of the killed worker")
            (tmp_path / "open").touch()
            completed(other, started)


def test_a_remote_worker_of_a_killed_up_keeps_its_work(tmp_path: Path) -> None:
    port = str(free_port())
    up = Process(tmp_path, "up", "up", "--port", port, **LONG)
    worker = Process(tmp_path, "worker", "worker", "--server", f"http://127.0.0.1:{port}", "--pool", "far", **LONG)
    try:
        up.start()
        up.until(r"noetl: http://\S+")
        worker.start()
        worker.until(r"noetl: worker \S+ at http")
        started = start(f"http://127.0.0.1:{port}", tmp_path, POOLED)
        up.kill()
        up.start()
        up.until(r"noetl: http://\S+", 2)
        up.until(r"Worker \S+ connected", 2)
        (tmp_path / "open").touch()
        completed(f"http://127.0.0.1:{port}", started)
    finally:
        worker.end()
        up.end()
    assert (count(tmp_path, "started"), count(tmp_path, "ended")) == (1, 1)


def test_a_worker_with_the_name_of_a_killed_one_is_not_mistaken_for_it(tmp_path: Path) -> None:
    """In containers a process gets the same number again."""
    settings = Settings(tmp_path / "noetl.db")
    settings.workers.mkdir()
    (settings.workers / "here:7").write_text("7")  # left by a killed process
    (settings.workers / "there:7").write_text("7")  # of another machine, whose locks cannot be seen
    assert killed_workers(settings, "here") == ["here:7"]
    with worker_lock(settings, "here:7"):
        assert killed_workers(settings, "here") == []
    assert not (settings.workers / "here:7").exists()
    assert killed_workers(settings, "here") == []
