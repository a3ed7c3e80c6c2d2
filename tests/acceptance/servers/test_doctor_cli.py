"""`noetl doctor` on broken set-ups: each finding names a fix, and it helps."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from noetl.client.local_server import local_server
from tests.acceptance.running import Folder
from tests.databases import empty_database
from tests.server.serving import ONE, bearer, process
from tests.services import free_port

SHIM = Path(__file__).parents[2] / "cluster" / "shim"
Findings = list[dict[str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "one.yaml").write_text(ONE)
    return Folder(tmp_path)


def doctor(folder: Folder, *arguments: str, **environment: str) -> tuple[int, Findings]:
    """Return the exit code, and what is not well."""
    ran = folder.call("doctor", "--json", *arguments, **environment)
    assert "Traceback" not in ran.err
    found: dict[str, Any] = json.loads(ran.out)
    statuses = [one["status"] for one in found["findings"]]
    assert (found["problems"], found["warnings"]) == (statuses.count("problem"), statuses.count("warning"))
    assert ran.code == (1 if found["problems"] else 0)
    wrong = [one for one in found["findings"] if one["status"] != "ok"]
    assert all(one["fix"] for one in wrong)
    return ran.code, wrong


def shifted(folder: Folder, seconds: int) -> dict[str, str]:
    """Return the environment of a process whose system clock is ahead."""
    (folder.path / "clock").write_text(f"{seconds} 0")
    path = os.pathsep.join([str(SHIM), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "SHIFTED_CLOCKS": str(folder.path / "clock")}


def test_nothing_is_wrong_with_a_fresh_set_up(folder: Folder) -> None:
    assert doctor(folder) == (0, [])
    assert not (folder.path / ".noetl").exists()  # it created nothing
    assert folder.call("run", "one.yaml").code == 0
    assert doctor(folder) == (0, [])
    shown = folder.call("doctor")
    assert (shown.code, shown.err) == (0, "0 problems, 0 warnings\n")
    assert "noetl.db takes a write" in shown.out


def test_a_running_server_with_its_worker_is_well(folder: Folder) -> None:
    with process(folder.path, "up", auth="auto") as (url, _up):
        assert doctor(folder, "--server", url) == (0, [])
    code, [wrong] = doctor(folder, "--server", url)
    assert (code, wrong["check"]) == (1, "server")
    assert "cannot be reached" in wrong["found"]


def test_a_server_without_workers_and_a_wrong_token(folder: Folder) -> None:
    with process(folder.path, "serve", auth="auto") as (url, _serve):
        code, [wrong] = doctor(folder, "--server", url)
        assert (code, wrong["check"], wrong["found"]) == (1, "workers", "No worker is ready, so no task runs.")
        token = local_server(url).token
        with httpx.Client(base_url=url, headers=bearer(str(token))) as client:
            client.post("/api/catalog", json={"content": ONE}).raise_for_status()
            client.post("/api/execute", json={"path": "test/one"}).raise_for_status()
        assert [one["found"] for one in doctor(folder, "--server", url)[1]] == [
            "No worker is ready, so no task runs.",
            "1 queued in the pool (default), which has no worker.",
        ]
        code, [wrong] = doctor(folder, "--server", url, NOETL_TOKEN="noetl_wrong")
        assert (code, wrong["check"]) == (1, "token")
        assert "noetl token create" in wrong["fix"]


def test_files_that_others_can_use(folder: Folder) -> None:
    assert folder.call("run", "one.yaml").code == 0
    store = folder.path / ".noetl" / "noetl.db"
    store.chmod(0o644)
    (folder.path / ".noetl" / "noetl.yaml").write_text("token: hush\n")
    (folder.path / ".noetl" / "noetl.yaml").chmod(0o640)
    code, wrong = doctor(folder)
    assert code == 1
    assert [one["check"] for one in wrong] == ["permissions", "permissions"]
    assert {"0640", "0644"} == {one["found"].split("mode ")[1][:4] for one in wrong}
    for one in wrong:  # the fix is a command that fixes it
        subprocess.run(["sh", "-c", one["fix"].split("`")[1]], cwd=folder.path, check=True)
    assert doctor(folder) == (0, [])


def test_wrong_settings_are_reported_and_nothing_else_is_checked(folder: Folder) -> None:
    code, wrong = doctor(folder, NOETL_CAPACITY="none", NOETL_LEASE_SECONDS="x", NOETL_METRICS_PROT="1")
    assert code == 1
    assert [(one["check"], one["status"]) for one in wrong] == [
        ("configuration", "problem"),
        ("configuration", "problem"),
        ("configuration", "warning"),
    ]


@pytest.fixture
def database() -> Iterator[str]:
    with empty_database() as address:
        yield address


def test_a_database_without_tables_and_one_without_a_key(folder: Folder, database: str) -> None:
    code, [wrong] = doctor(folder, NOETL_DB_URL=database)
    assert (code, wrong["check"], wrong["fix"]) == (1, "store", "Run `noetl db init`.")
    assert folder.call("db", "init", NOETL_DB_URL=database).code == 0
    code, [wrong] = doctor(folder, NOETL_DB_URL=database)
    assert (code, wrong["check"], wrong["status"]) == (0, "key", "warning")
    key = folder.call("credential", "key").out.strip()
    given = {"NOETL_DB_URL": database, "NOETL_ENCRYPTION_KEY": key}
    assert folder.call("credential", "put", "api", "--data", '{"token": "abc"}', **given).code == 0
    assert doctor(folder, **given) == (0, [])
    code, [wrong] = doctor(folder, NOETL_DB_URL=database)
    assert (code, wrong["found"]) == (1, "No key encrypts credentials; 1 are stored.")
    other = folder.call("credential", "key").out.strip()
    code, [wrong] = doctor(folder, NOETL_DB_URL=database, NOETL_ENCRYPTION_KEY=other)
    assert (code, wrong["check"]) == (1, "key")
    assert "which this process does not have" in wrong["found"]


def test_a_key_file_that_is_gone(folder: Folder) -> None:
    assert folder.call("credential", "put", "api", "--data", '{"token": "abc"}').code == 0
    key = folder.path / ".noetl" / "key"
    text = key.read_text()
    key.unlink()
    code, [wrong] = doctor(folder)
    assert (code, wrong["found"]) == (1, "1 credentials are stored, and their key is missing.")
    assert not key.exists()
    key.write_text(text)
    key.chmod(0o600)
    assert doctor(folder) == (0, [])


def test_a_database_that_does_not_answer(folder: Folder) -> None:
    code, [wrong] = doctor(folder, NOETL_DB_URL=f"postgresql://me:hush@127.0.0.1:{free_port()}/noetl")
    assert (code, wrong["check"]) == (1, "store")
    assert "hush" not in str(wrong)


def test_clocks_that_differ(folder: Folder, database: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert folder.call("db", "init", NOETL_DB_URL=database).code == 0
    key = folder.call("credential", "key").out.strip()
    given = {"NOETL_DB_URL": database, "NOETL_ENCRYPTION_KEY": key}
    ahead = shifted(folder, 600)
    [wrong] = doctor(folder, **given, **ahead)[1]
    assert (wrong["check"], "that of the database" in wrong["found"]) == ("clock", True)
    assert "600.0 s ahead of" in wrong["found"] or "599.9 s ahead of" in wrong["found"]
    with process(folder.path, "up", auth="auto") as (url, _up):
        assert doctor(folder, "--server", url) == (0, [])
        elsewhere = Folder(tmp_path_factory.mktemp("elsewhere"))  # processes on one store have one clock
        [wrong] = doctor(elsewhere, "--server", url, **shifted(folder, -30))[1]
        assert (wrong["check"], wrong["found"].split(" s ")[1]) == ("clock", f"behind that of the server {url}.")


def test_a_server_whose_clock_differs_from_its_database(folder: Folder, database: str) -> None:
    given = {"NOETL_DB_URL": database, "NOETL_LOG_LEVEL": "error", **shifted(folder, 600)}
    with process(folder.path, "up", auth="auto", environment=given) as (url, _up):
        wrong = [one["found"] for one in doctor(folder, "--server", url)[1] if one["check"] == "clock"]
    assert len(wrong) == 1
    assert wrong[0].startswith("On the server: The system clock is 600.0 s ahead of")


@contextmanager
def mounted(place: Path, size: str) -> Iterator[None]:
    """Mount an empty file system of this size, which needs root."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(command, check=False).returncode:
        pytest.skip("this user cannot mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(file: Path) -> None:
    """Write until nothing more fits."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(opened, b"x" * 4096)
    os.close(opened)


def test_a_disk_that_is_full(folder: Folder) -> None:
    home = folder.path / "small"
    with mounted(home, "4m"):
        given = {"NOETL_HOME": str(home)}
        assert folder.call("run", "one.yaml", **given).code == 0
        fill(home / "filler")
        code, wrong = doctor(folder, **given)
        assert code == 1
        assert {one["check"] for one in wrong} >= {"disk"}
        assert wrong[0]["found"].startswith("The disk is full: 0 of 4 MiB are free for the store")
    (folder.path / "small").rmdir()
    with mounted(home, "2g"):  # nothing is taken before it is written
        assert doctor(folder, **given) == (0, [])
