"""Nothing that a command or a server writes for itself is open to other users."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import httpx

from tests.server.serving import PATIENCE_S, playbook, process

LARGE = playbook(
    "  - step: large\n    tool: {kind: python, code: \"result = 'x' * 300_000\", output: {store: {kind: file}}}\n",
    "large",
)


def open_to_others(folder: Path) -> list[str]:
    """Return what users other than the owner can read, write or enter."""
    return [
        f"{path.relative_to(folder)} {stat.filemode(path.stat().st_mode)}"
        for path in folder.rglob("*")
        if path.stat().st_mode & 0o077
    ]


def test_a_run_with_an_open_umask_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text(LARGE)
    command = f"umask 0; exec {sys.executable} -m noetl run large.yaml"
    ran = subprocess.run(
        ["sh", "-c", command], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ran.returncode == 0, ran.stderr
    home = tmp_path / ".noetl"
    assert [path.is_file() for path in (home / "blobs").rglob("*")].count(True) == 2
    assert home.stat().st_mode & 0o077 == 0
    assert open_to_others(home) == []


def test_a_server_with_an_open_umask_leaves_nothing_open(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    with process(tmp_path, "up", environment={"NOETL_HOME": str(home)}, umask=0) as (url, _up):
        httpx.put(f"{url}/api/credentials/a", json={"data": {"token": "x"}}).raise_for_status()
        found = {path.name for path in home.iterdir()}
        assert found >= {"noetl.db", "noetl.db-wal", "noetl.db-shm", "key"}
        assert open_to_others(tmp_path) == []
