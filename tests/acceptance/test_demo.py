"""`make demo`: its script, with and without a terminal; nothing is left behind."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0


@contextmanager
def demo(folder: Path, stdin: int, out: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start the script in its own process group; check that nothing is left of it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        started = subprocess.Popen(
            ["bash", str(ROOT / "scripts" / "demo.sh")],
            start_new_session=True,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "TMPDIR": str(folder),
                "NOETL_PORT": str(taken.getsockname()[1]),
            },
            stdin=stdin,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            yield started
            with pytest.raises(ProcessLookupError):
                os.killpg(started.pid, 0)
            assert list(folder.iterdir()) == []
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()


def test_without_a_terminal_it_ends_by_itself(tmp_path: Path) -> None:
    with demo(tmp_path, subprocess.DEVNULL, subprocess.PIPE) as started:
        told = started.communicate(timeout=PATIENCE_S)[0].decode()
        assert started.returncode == 0, told
        assert "Hello, there!" in told
        assert told.count('"status": "completed"') == 2
        assert "/docs" in told.partition("Where to look next")[2]
        assert "until Ctrl-C" not in told


def test_on_a_terminal_the_server_stays_until_ctrl_c(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with demo(tmp_path, theirs, theirs) as started, open(ours, "rb", 0) as screen:
        os.close(theirs)
        told = b""
        while b"until Ctrl-C" not in told:
            told += screen.read(4096)
        os.killpg(started.pid, signal.SIGINT)
        assert started.wait(PATIENCE_S) == 0, told.decode()
