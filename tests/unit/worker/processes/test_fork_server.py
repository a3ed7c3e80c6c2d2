"""The fork server goes on where it cannot fork, and where it cannot kill."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from noetl.worker.processes.fork_server import NOTICE, ORDER

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a server of another user than root is needed")
SERVER = """
import base64, csv, decimal, hashlib, os, random, resource, signal, socket, statistics, string, sys, time, urllib.parse, uuid
from noetl.worker.processes import children
from noetl.worker.processes.bounds import Bounds
from noetl.worker.processes.fork_server import ForkServer, Limits
{before}
os.setgroups([])
os.setuid(100_000 + os.getpid())  # a user without other processes
os.chdir("/")
ForkServer(socket.socket(fileno=int(sys.argv[1])), Limits()).serve()
"""
ROOTS_DAEMON = """
import ctypes
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # adopt, as the server does
if os.fork() == 0:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.execvp("sleep", ["sleep", "300"])
    print(pid, flush=True)
    os._exit(0)
os.wait()
"""
ONE_CHILD = "resource.setrlimit(resource.RLIMIT_NPROC, (2, resource.getrlimit(resource.RLIMIT_NPROC)[1]))"
Order = Callable[[bytes, int], None]
Notice = Callable[[], tuple[bytes, int, int]]


@contextmanager
def server(before: str) -> Iterator[tuple[subprocess.Popen[bytes], Order, Notice]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(60)
    argv = [sys.executable, "-c", SERVER.format(before=before), str(theirs.fileno())]
    channels: list[socket.socket] = []

    def order(what: bytes, number: int) -> None:
        channel, its = socket.socketpair()
        channels.append(channel)
        with its, open(os.devnull, "rb+") as nothing:
            fds = [its.fileno(), *[nothing.fileno()] * 3] if what == b"S" else []
            socket.send_fds(ours, [ORDER.pack(what, number)], fds)

    def notice() -> tuple[bytes, int, int]:
        found: tuple[bytes, int, int] = NOTICE.unpack(ours.recv(NOTICE.size, socket.MSG_WAITALL))
        return found

    with subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE) as process:
        theirs.close()
        try:
            yield process, order, notice
        finally:
            for one in (ours, *channels):
                one.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def test_a_fork_that_fails_is_an_error_of_its_task_alone() -> None:
    with server(ONE_CHILD) as (_, order, notice):
        order(b"S", 1)
        assert notice()[:2] == (b"B", 1)
        order(b"S", 2)
        assert notice() == (b"F", 2, errno.EAGAIN)
        assert notice() == (b"E", 2, 1)
        order(b"K", 1)
        assert notice() == (b"E", 1, -signal.SIGKILL)
        order(b"S", 3)
        assert notice()[:2] == (b"B", 3)


def test_a_process_that_cannot_be_killed_holds_nothing_up() -> None:
    with server(ROOTS_DAEMON) as (process, order, notice):
        assert process.stdout is not None
        daemon = int(process.stdout.readline())
        try:
            for number in (1, 2, 3):
                order(b"S", number)
                assert notice()[:2] == (b"B", number)
                order(b"K", number)
                assert notice() == (b"E", number, -signal.SIGKILL)
            os.kill(daemon, 0)  # it runs: nothing waited for its end
        finally:
            os.kill(daemon, signal.SIGKILL)
