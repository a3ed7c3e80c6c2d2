"""Fork server (the nursery): forks, ends and reaps the children of a worker.

It is started by `children.py` and loads, once, what nearly every child needs; a fork of it is ready in about a
millisecond. Every child has its own process group and is a sub-reaper: what it starts stays below it, however it detaches
itself. All share the nursery's session: Linux divides the processors among sessions (autogroup), and the tasks together
take no more from the server than one of them would. The nursery is a sub-reaper too: it adopts what an ended child
leaves, and kills it, as it kills everything below it that is no child of its own. So nothing outlives its task. When the
worker ends for any reason, the control socket closes and all children are killed. Children also die with the nursery
itself. Limits and the sandbox are in place before a child reads its first task. Tested in
tests/unit/worker/processes/test_children.py.

Control, from the worker: `S` id with four file descriptors (channel, stdin, stdout, stderr) for a program, `W` id with
them for Python code (it is warm when its first task comes), `K` id. To the worker: `B` id pid (it runs), `F` id errno (it
could not be forked), `P` and `D` id 0 (it is ended, for its processes or its disk), `E` id status. A channel carries
frames: length, number, and a mark (of a job) or nanoseconds (of an answer), then JSON. Each frame is a message of its
own, a large one several: what a child has not read, the worker can take back.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from noetl.model.refs import MOST_BYTES
from noetl.worker.processes import folders, network, python_runner, sandbox
from noetl.worker.processes.bounds import (
    Bounds,
    PidGroups,
    ProcessFiles,
    bound_this_process,
    bound_user,
    children_of,
    folder_size,
    kill_tree,
    tree_size,
)

ORDER: Final = struct.Struct(">cQ")
NOTICE: Final = struct.Struct(">cQi")
HEAD: Final = struct.Struct(">IQQ")
PIECE: Final = 1 << 16  # bytes of a message
MOST_ANSWER: Final = MOST_BYTES + (1 << 20)  # of a child: a result, and what is around it
LEFT: Final = b'{"left":true,'  # how an answer begins whose process must not serve another task
_PRELOAD: Final = (
    *("base64", "collections", "csv", "datetime", "decimal", "functools", "hashlib", "itertools", "math", "random"),
    *("re", "statistics", "string", "time", "urllib.parse", "uuid"),
)
_PRELOAD_IDLE: Final = ("asyncio",)  # takes as long as all the others, and few tasks need it
_FIRST_JOB: Final = {"code": "result = 0", "variables": {}, "input": {}}
_MARK: Final = b"\0noetl:"
_loads = json.loads  # code may replace what a module holds
_SET_DEATH_SIGNAL: Final = 1
_SET_SUBREAPER: Final = 36
_LOOK_MS: Final = 1_000  # interval at which bounds are checked that the kernel does not keep
_WAIT_S: Final = 1.0  # for killed processes to end; those that do not are waited for once, and looked at later
_PAUSE_S: Final = 0.001
_SPENT: Final = 10  # a process that used this part of its processor time serves no other task


class Limits(NamedTuple):
    """Limits of every child."""

    bounds: Bounds = Bounds()
    sandbox: str = "none"
    hidden: tuple[str, ...] = ()  # what a sandbox keeps from children
    writable: tuple[str, ...] = ()  # where children may write in a sandbox, besides their own folder
    folders: str = ""  # where each child has its own, with a sandbox; no child sees another's
    has_network: bool = True


def _load(names: tuple[str, ...]) -> bool:
    """Import what children need; a fork shares its pages."""
    for name in names:
        __import__(name)
    gc.freeze()
    return True


class ForkServer:
    """The children that run, by the worker's numbers, and the limits of each."""

    def __init__(self, control: socket.socket, limits: Limits) -> None:
        self._control = control
        self._limits = limits
        self._groups = PidGroups() if limits.bounds.processes else None
        self._pids: dict[int, int] = {}
        self._lasting: set[int] = set()  # processes that did not end when they were killed
        self._bell, self._ringer = socket.socketpair()

    def serve(self) -> None:
        """Fork, reap and kill until the worker is gone."""
        _process_control(_SET_SUBREAPER, 1)
        _load(_PRELOAD)
        sys.path.append(str(Path.cwd()))  # last: a task may import what lies here, and cannot shadow anything by it
        self._bell.setblocking(False)
        self._ringer.setblocking(False)
        signal.set_wakeup_fd(self._ringer.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        looked, is_loaded = time.monotonic(), False
        while True:
            ready = {fd for fd, _ in poll.poll(_LOOK_MS if self._pids or not is_loaded else None)}
            if not ready and not is_loaded:
                is_loaded = _load(_PRELOAD_IDLE)
            if time.monotonic() - looked > _LOOK_MS / 1000:
                self._look()
                looked = time.monotonic()
            if self._bell.fileno() in ready:
                with contextlib.suppress(BlockingIOError):
                    self._bell.recv(4096)
                self._reap()
            if self._control.fileno() in ready and not self._obey():
                break
        self._end()

    def _end(self) -> None:
        for pid in self._pids.values():
            _kill_group(pid)
        numbers, self._pids = list(self._pids), {}
        self._kill_orphans()
        for number in numbers:
            self._clear(number)
        if self._limits.folders:
            folders.remove(self._limits.folders)

    def _obey(self) -> bool:
        """Execute one order; return False if the worker is gone."""
        try:
            order, fds, _, _ = socket.recv_fds(self._control, ORDER.size, 4, socket.MSG_WAITALL)
        except ConnectionError:
            return False
        if len(order) < ORDER.size:
            return False
        what, number = ORDER.unpack(order)
        if what in (b"S", b"W"):
            self._fork(number, fds, is_warm=what == b"W")
        elif number in self._pids:
            _kill_group(self._pids[number])
        return True

    def _fork(self, number: int, fds: list[int], *, is_warm: bool) -> None:
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell(b"F", number, error.errno or 0)
            self._tell(b"E", number, 1)
        else:
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for one in (self._control, self._bell, self._ringer):
                    one.close()
                _child(fds, server, self._limits, number, self._groups, is_warm=is_warm)
            self._pids[number] = pid
            self._tell(b"B", number, pid)
        for fd in fds:
            os.close(fd)

    def _reap(self) -> None:
        """Report ended children; what each started is killed first, before pid reuse."""
        numbers = {pid: number for number, pid in self._pids.items()}
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            if found is None:
                break
            number = numbers.get(found.si_pid)
            if number is not None:
                _kill_group(found.si_pid)
            _, status = os.waitpid(found.si_pid, 0)
            if number is None:
                continue
            del self._pids[number]
            self._kill_orphans()
            self._clear(number)
            self._tell(b"E", number, os.waitstatus_to_exitcode(status))

    def _look(self) -> None:
        """End tasks with too many processes or too much on disk, and stray processes."""
        bounds = self._limits.bounds
        for number, pid in list(self._pids.items()):
            if bounds.processes and tree_size(pid) > bounds.processes:
                self._tell(b"P", number, 0)
                kill_tree(pid)
            elif bounds.disk and self._limits.folders:
                folder = str(Path(self._limits.folders, str(number)))
                if folder_size(folder, bounds.disk) > bounds.disk:
                    self._tell(b"D", number, 0)
                    kill_tree(pid)
        self._kill_orphans()

    def _kill_orphans(self) -> None:
        """Kill adopted processes: those of ended tasks, and those that left their own."""
        until = time.monotonic() + _WAIT_S
        while orphans := children_of(os.getpid()) - set(self._pids.values()):  # killed processes may leave orphans
            for pid in orphans:
                _kill_group(pid)
                kill_tree(pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if orphans <= self._lasting or time.monotonic() > until:
                break
            time.sleep(_PAUSE_S)
        self._lasting = orphans

    def _clear(self, number: int) -> None:
        """Remove the folder and the group of an ended task."""
        if self._limits.folders:
            folders.remove(os.path.join(self._limits.folders, str(number)))
        if self._groups is not None:
            self._groups.remove(number)

    def _tell(self, what: bytes, number: int, value: int) -> None:
        with contextlib.suppress(OSError):
            self._control.sendall(NOTICE.pack(what, number, value))


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)  # it may not have its own group yet


def _child(
    fds: list[int], server: int, limits: Limits, number: int, groups: PidGroups | None, *, is_warm: bool
) -> NoReturn:
    """Run as a sandboxed child: code until the channel closes, or a named program."""
    status = 1
    try:
        os.setpgid(0, 0)
        _process_control(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)  # the nursery died before the signal was set
        _process_control(_SET_SUBREAPER, 1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, fd in enumerate(fds[1:4]):
            os.dup2(fd, target)
            os.close(fd)
        if groups is not None and groups.are_here:
            groups.enter(number, limits.bounds.processes)
        else:
            bound_user(limits.bounds.processes)
        bound_this_process(limits.bounds)
        folder = _wall(fds[0], limits, number, is_warm=is_warm) if limits.sandbox != "none" else ""
        os.set_inheritable(fds[0], False)
        if not limits.has_network:
            network.close()
        _serve_tasks(socket.socket(fileno=fds[0]), limits.bounds, folder, is_warm=is_warm)
        status = 0
    finally:
        os._exit(status)


def _wall(channel: int, limits: Limits, number: int, *, is_warm: bool) -> str:
    """Confine this process; return its own folder.

    `bwrap` executes a new program, which continues inside.
    """
    folder = str(Path(limits.folders, str(number)))
    os.mkdir(folder, 0o700)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    writable, hidden = (folder, *limits.writable), (*limits.hidden, limits.folders)
    if limits.sandbox == "landlock":
        sandbox.enter(writable, hidden)
        return folder
    os.set_inheritable(channel, True)
    again = [
        sys.executable,
        "-P",
        "-m",
        "noetl.worker.processes.fork_server",
        "inside",
        str(channel),
        json.dumps([limits.bounds, limits.has_network, is_warm]),
        folder,
    ]
    argv = sandbox.inside_bwrap(again, writable, hidden)
    os.execve(argv[0], argv, dict(os.environ))
    raise AssertionError("unreachable")


def _serve_tasks(channel: socket.socket, bounds: Bounds, folder: str, *, is_warm: bool) -> None:
    if bounds.memory:
        resource.setrlimit(resource.RLIMIT_DATA, (bounds.memory, bounds.memory))
    if is_warm:
        _work(channel, bounds, folder)
        return
    first = read(channel)
    if first is not None:
        own = {"TMPDIR": folder} if folder else {}
        program = first[2]
        _become(channel, program["argv"], {**program["env"], **own}, program.get("cwd"))


class _Streams:
    """The original standard streams, restored per task, as code may replace them."""

    def __init__(self) -> None:
        self._own = [os.dup(fd) for fd in range(3)]  # not inherited by programs
        self._files: list[Any] = [None, None, None]

    def restore(self, mark: int = 0) -> None:
        if mark:
            os.write(self._own[1], mark_text(mark) + b"\n")
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


class _Surroundings:
    """Folder and environment of this process, restored per task.

    The interpreter says when a variable changes: comparing them costs more than a short task.
    """

    def __init__(self, scratch: str) -> None:
        self._folder, self._scratch = os.getcwd(), scratch
        self._environment, self._variables = os.environ, dict(os.environ)
        self._is_changed = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: tuple[Any, ...]) -> None:
        if event in ("os.putenv", "os.unsetenv"):
            self._is_changed = True

    def restore(self) -> None:
        with contextlib.suppress(OSError):
            os.chdir(self._folder)
        if self._is_changed or os.environ is not self._environment:
            os.environ = self._environment  # noqa: B003 - it is the original
            os.environ.clear()
            os.environ.update(self._variables)
            self._is_changed = False
        if self._scratch:
            folders.empty(self._scratch)


def _work(channel: socket.socket, bounds: Bounds, scratch: str) -> None:
    streams = _Streams()
    streams.restore()
    around, own = _Surroundings(scratch), os.getpid()
    files = ProcessFiles(own)
    python_runner.run(_FIRST_JOB)  # the memory that a task needs is this process's own from here on
    while (job := read(channel)) is not None:
        around.restore()
        number, mark, what = job
        streams.restore(mark)
        began = time.perf_counter_ns()
        answer = python_runner.run(what)
        took = time.perf_counter_ns() - began
        if os.getpid() != own:
            return  # the code forked and returned twice; only the first process may answer
        streams.flush()
        # Threads or processes still run, or its processor time is spent: no other task may share it.
        left = threading.active_count() > 1 or (bounds.cpu_s and time.process_time() > bounds.cpu_s / _SPENT)
        left = left or not files.is_alone(one_thread=bool(scratch))
        if len(answer) > MOST_ANSWER:
            left, answer = True, python_runner.too_large(len(answer), MOST_BYTES)
        write(channel, LEFT + answer[1:] if left else answer, number, took)
        while left:
            signal.pause()  # the worker ends it, and takes back what it was sent


def _become(channel: socket.socket, argv: list[str], env: dict[str, str], cwd: str | None) -> None:
    """Execute another program; a failure is sent on the channel, which else closes."""
    try:
        if cwd:
            os.chdir(cwd)
        os.execvpe(argv[0], argv, env)
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        told = json.dumps({"errno": number or 0, "message": os.strerror(number) if number else str(error)}).encode()
        write(channel, told)


def write(channel: socket.socket, body: bytes, number: int = 0, took: int = 0) -> None:
    """Write one frame."""
    data = HEAD.pack(len(body), number, took) + body
    for start in range(0, len(data), PIECE):
        channel.sendall(data[start : start + PIECE])


def read(channel: socket.socket) -> tuple[int, int, dict[str, Any]] | None:
    """Read one frame: number, mark, content; None if the other side is gone."""
    data, size = b"", HEAD.size
    parts: list[bytes] = []
    try:
        while size > 0 or not data:
            part = channel.recv(PIECE)
            if not part:
                return None
            size -= len(part)
            parts.append(part)
            if not data and size <= 0:
                data = b"".join(parts)
                size += HEAD.unpack_from(data)[0]
    except ConnectionError:
        return None
    data = b"".join(parts)
    _, number, mark = HEAD.unpack_from(data)
    return number, mark, _loads(data[HEAD.size :])


def mark_text(mark: int) -> bytes:
    """Return what separates the output of two jobs, before a line break."""
    return _MARK + b"%016x" % mark


def _process_control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    if sys.argv[1] == "inside":
        _process_control(_SET_SUBREAPER, 1)
        bounds, has_network, is_warm = json.loads(sys.argv[3])
        if not has_network:
            network.close()
        _serve_tasks(socket.socket(fileno=int(sys.argv[2])), Bounds(*bounds), sys.argv[4], is_warm=is_warm)
    else:
        bounds, *more = json.loads(sys.argv[2])
        ForkServer(socket.socket(fileno=int(sys.argv[1])), Limits(Bounds(*bounds), *more)).serve()
