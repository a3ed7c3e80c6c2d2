"""A process that has loaded NoETL, and forks a child for each command of a test.

Loading takes most of the time of a short command. The child is a process of its own, with the folder, environment, streams
and exit code of the command, as if it were started alone; what must be loaded anew is started alone. Tested by every test
of tests/acceptance.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
MOST: Final = 1 << 20  # bytes of an order
PACKAGES: Final = (
    "noetl.cli",
    "noetl.wiring",
    "noetl.tools",
    "noetl.stores",
    "noetl.server",
    "noetl.worker",
    "noetl.testing",
)
OWN: Final = ("PYTHON", "LC_", "LANG", "LD_")  # variables that the interpreter reads when it starts


class Preloaded:
    """The process, and the socket on which it takes orders."""

    def __init__(self) -> None:
        self._path = str(Path(tempfile.mkdtemp(prefix="noetl-preloaded-"), "orders"))
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with listening:
            listening.bind(self._path)
            listening.listen(64)
            words = [sys.executable, "-m", "tests.preloaded", str(listening.fileno()), str(os.getpid())]
            self._process = subprocess.Popen(words, cwd=ROOT, pass_fds=[listening.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self.close)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
            os.rmdir(os.path.dirname(self._path))

    def run(
        self,
        arguments: Sequence[str],
        streams: Sequence[int],
        *,
        folder: Path | None,
        environment: Mapping[str, str],
        patience_s: float,
    ) -> int:
        """Run a command; give its exit code. Closing the socket kills it."""
        order = {"arguments": list(arguments), "folder": str(folder or os.getcwd()), "environment": dict(environment)}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.settimeout(patience_s)
            asking.connect(self._path)
            socket.send_fds(asking, [json.dumps(order).encode()], list(streams))
            return int(asking.recv(64))


@cache
def preloaded() -> Preloaded:
    """Return the process of this test run."""
    return Preloaded()


def _load() -> None:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(found.name)
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"loading started {len(threads) - 1} threads, which a fork would lose"
    gc.collect()
    gc.freeze()


def _serve(listening: socket.socket, owner: int) -> list[str]:
    """Fork for each order; return the arguments, in the process of a command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.getppid() == owner:
        if not select.select([listening], [], [], 1.0)[0]:
            continue
        asking, _ = listening.accept()
        with asking:
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                return _begin(asking)
    os._exit(0)


def _begin(asking: socket.socket) -> list[str]:
    data, streams, _, _ = socket.recv_fds(asking, MOST, 3)
    order = json.loads(data)
    child = os.fork()
    if child:
        _wait(asking, child)
    asking.close()
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    os.chdir(order["folder"])
    sys.path[0] = order["folder"]  # as `python -m` sets it
    os.environ.clear()
    os.environ.update(order["environment"])
    arguments: list[str] = order["arguments"]
    return arguments


def _wait(asking: socket.socket, child: int) -> None:
    """Send the exit code of a command; kill it if that is not wanted any more."""
    ended = os.pidfd_open(child)
    if ended not in select.select([ended, asking.fileno()], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        asking.send(str(status).encode())
    os._exit(0)


if __name__ == "__main__":
    _load()
    sys.argv[1:] = _serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    from noetl.cli import main

    main()
