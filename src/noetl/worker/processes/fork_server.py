"""Fork server (the nursery): forks, ends and reaps the children of a worker.

It is started by `children.py` and loads, once, what nearly every child needs; a fork of it is ready in about a
millisecond. Every child has its own session. The nursery is a sub-reaper: it adopts whatever a task leaves behind, so
that nothing outlives its task. When the worker ends for any reason, the control socket closes and all children are
killed. Children also die with the nursery itself. Limits and the sandbox are in place before a child reads its first
task. Tested in tests/unit/worker/processes/test_children.py.

Control, from the worker: `S` id with four file descriptors (channel, stdin, stdout, stderr), `K` id. To the worker: `E`
id status. A channel carries frames: four bytes of length, then JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from noetl.worker.processes import python_runner, sandbox

ORDER: Final = struct.Struct(">cQ")
NOTICE: Final = struct.Struct(">cQi")
LENGTH: Final = struct.Struct(">I")
MOST_FRAME: Final = 1 << 30  # more is no frame: something else was written to the channel
LEFT: Final = b'{"left":true,'  # how an answer begins whose process must not serve another task
MARK: Final = "NOETL_CHILD"  # in the environment of everything that a child starts
_MARK: Final = f"{MARK}=".encode()
_PRELOAD: Final = (
    *("base64", "collections", "csv", "datetime", "decimal", "functools", "hashlib", "itertools", "math", "random"),
    *("re", "statistics", "string", "time", "urllib.parse", "uuid"),
)
_loads = json.loads  # code may replace what a module holds
_SET_DEATH_SIGNAL: Final = 1
_SET_SUBREAPER: Final = 36


class Limits(NamedTuple):
    """Limits of every child."""

    memory: int = 0  # bytes of data; 0: no limit
    sandbox: str = "none"
    hidden: tuple[str, ...] = ()  # what a sandbox keeps from children
    writable: tuple[str, ...] = ()  # where children may write in a sandbox, besides their own folder
    folders: str = ""  # where each child has its own, with a sandbox; no child sees another's


def serve(control: socket.socket, limits: Limits) -> None:
    """Fork, reap and kill until the worker is gone."""
    _process_control(_SET_SUBREAPER, 1)
    for name in _PRELOAD:
        __import__(name)
    sys.path.append(str(Path.cwd()))  # last: a task may import what lies here, and cannot shadow anything by it
    gc.freeze()
    bell, ringer = socket.socketpair()
    bell.setblocking(False)
    ringer.setblocking(False)
    signal.set_wakeup_fd(ringer.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pids: dict[int, int] = {}  # by id
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(bell, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if bell.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                bell.recv(4096)
            _reap(control, pids, limits.folders)
        if control.fileno() in ready and not _obey(control, pids, limits, (bell, ringer)):
            break
    for pid in pids.values():
        _kill_session(pid)
    _kill_orphans({})
    if limits.folders:
        shutil.rmtree(limits.folders, ignore_errors=True)


def _obey(control: socket.socket, pids: dict[int, int], limits: Limits, own: tuple[socket.socket, ...]) -> bool:
    """Execute one order; return False if the worker is gone."""
    try:
        order, fds, _, _ = socket.recv_fds(control, ORDER.size, 4, socket.MSG_WAITALL)
    except ConnectionError:
        return False
    if len(order) < ORDER.size:
        return False
    what, number = ORDER.unpack(order)
    if what == b"S":
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for one in (control, *own):
                one.close()
            _child(fds, server, limits, number)
        for fd in fds:
            os.close(fd)
        pids[number] = pid
    elif number in pids:
        _kill_session(pids[number])
    return True


def _reap(control: socket.socket, pids: dict[int, int], folders: str) -> None:
    """Report ended children; what each started is killed first, before pid reuse."""
    numbers = {pid: number for number, pid in pids.items()}
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            break
        if found is None:
            break
        number = numbers.get(found.si_pid)
        if number is not None:
            _kill_session(found.si_pid)
        _, status = os.waitpid(found.si_pid, 0)
        if number is None:
            continue
        del pids[number]
        _kill_orphans(pids)
        if folders:
            shutil.rmtree(Path(folders, str(number)), ignore_errors=True)
        with contextlib.suppress(OSError):
            control.sendall(NOTICE.pack(b"E", number, os.waitstatus_to_exitcode(status)))


def _kill_session(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)  # it may not have its own group yet


def _kill_orphans(pids: Mapping[int, int]) -> None:
    """Kill adopted processes that detached themselves from an ended task."""
    for _ in range(8):  # killed processes may leave orphans
        orphans = [pid for pid in _adopted() - set(pids.values()) if not _belongs(pid, pids)]
        if not orphans:
            return
        for pid in orphans:
            _kill_session(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _adopted() -> set[int]:
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return set()
    return {int(pid) for pid in text.split()}


def _belongs(pid: int, pids: Mapping[int, int]) -> bool:
    """Return whether a process is of a running task, by session or environment mark."""
    try:
        if os.getsid(pid) in pids.values():
            return True
        marks = [part for part in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if part.startswith(_MARK)]
    except OSError:
        return False
    return any(int(mark.removeprefix(_MARK)) in pids for mark in marks)


def _child(fds: list[int], server: int, limits: Limits, number: int) -> NoReturn:
    """Run as a sandboxed child: code until the channel closes, or a named program."""
    status = 1
    try:
        os.setsid()
        _process_control(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)  # the nursery died before the signal was set
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, fd in enumerate(fds[1:4]):
            os.dup2(fd, target)
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ[MARK] = str(number)
        if limits.sandbox != "none":
            _wall(fds[0], limits, number)
        os.set_inheritable(fds[0], False)
        _serve_tasks(socket.socket(fileno=fds[0]), limits.memory)
        status = 0
    finally:
        os._exit(status)


def _wall(channel: int, limits: Limits, number: int) -> None:
    """Confine this process; `bwrap` executes a new program, which continues inside."""
    folder = str(Path(limits.folders, str(number)))
    os.mkdir(folder, 0o700)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    writable, hidden = (folder, *limits.writable), (*limits.hidden, limits.folders)
    if limits.sandbox == "landlock":
        sandbox.enter(writable, hidden)
        return
    os.set_inheritable(channel, True)
    again = [
        sys.executable,
        "-P",
        "-m",
        "noetl.worker.processes.fork_server",
        "inside",
        str(channel),
        str(limits.memory),
    ]
    argv = sandbox.inside_bwrap(again, writable, hidden)
    os.execve(argv[0], argv, dict(os.environ))


def _serve_tasks(channel: socket.socket, memory: int) -> None:
    first = read(channel)
    if first is None:
        return
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    if "argv" in first:
        own = {name: os.environ[name] for name in (MARK, "TMPDIR") if name in os.environ}
        _become(channel, first["argv"], {**first["env"], **own}, first.get("cwd"))
    else:
        _work(channel, first)


class _Streams:
    """The original standard streams, restored per task, as code may replace them."""

    def __init__(self) -> None:
        self._own = [os.dup(fd) for fd in range(3)]  # not inherited by programs
        self._files: list[Any] = [None, None, None]

    def restore(self) -> None:
        for fd, own in enumerate(self._own):
            os.dup2(own, fd)
        for fd, name in enumerate(("stdin", "stdout", "stderr")):
            file = self._files[fd]
            if file is None or file.closed or getattr(sys, name) is not file:
                mode = "w" if fd else "r"
                self._files[fd] = open(  # noqa: SIM115 - open for the life of the process
                    fd, mode, buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
                )
                setattr(sys, name, self._files[fd])

    def flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()


def _work(channel: socket.socket, job: dict[str, Any] | None) -> None:
    streams = _Streams()
    folder, environment, own = os.getcwd(), dict(os.environ), os.getpid()
    while job is not None:
        streams.restore()
        answer = python_runner.run(job)
        if os.getpid() != own:
            return  # the code forked and returned twice; only the first process may answer
        streams.flush()
        if threading.active_count() > 1:
            answer = LEFT + answer[1:]  # threads are still running: no other task may share the process
        channel.sendall(LENGTH.pack(len(answer)) + answer)
        job = read(channel)
        with contextlib.suppress(OSError):
            os.chdir(folder)
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)


def _become(channel: socket.socket, argv: list[str], env: dict[str, str], cwd: str | None) -> None:
    """Execute another program; a failure is sent on the channel, which else closes."""
    try:
        if cwd:
            os.chdir(cwd)
        os.execvpe(argv[0], argv, env)
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        told = json.dumps({"errno": number or 0, "message": os.strerror(number) if number else str(error)}).encode()
        channel.sendall(LENGTH.pack(len(told)) + told)


def read(channel: socket.socket) -> dict[str, Any] | None:
    """Read one frame; None if the other side is gone."""
    try:
        head = _exactly(channel, LENGTH.size)
        body = _exactly(channel, LENGTH.unpack(head)[0]) if head else None
    except ConnectionError:
        return None
    found: dict[str, Any] | None = _loads(body) if body else None
    return found


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _process_control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    if sys.argv[1] == "inside":
        _serve_tasks(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]))
    else:
        serve(socket.socket(fileno=int(sys.argv[1])), Limits(*json.loads(sys.argv[2])))
