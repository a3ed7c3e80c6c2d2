"""The demo's script as a process, for tests and for pictures of its workspace."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
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
            assert not _lives(started.pid), "a process of the demo is left"
            assert list(folder.iterdir()) == []
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def on_a_terminal(folder: Path) -> Iterator[str]:
    """Run the demo until it serves; yield the link it prints; end it with Ctrl-C."""
    ours, theirs = pty.openpty()
    with demo(folder, theirs, theirs) as started, open(ours, "rb", 0) as screen:
        os.close(theirs)
        told = b""
        while b"until Ctrl-C" not in told:
            told += screen.read(4096)
        yield re.findall(r"http://\S+token=[\w-]+", told.decode())[0]
        os.killpg(started.pid, signal.SIGINT)
        assert started.wait(PATIENCE_S) == 0, told.decode()
