"""A process that has loaded NoETL, and forks a child for each command of a test.

Loading takes most of the time of a short command, of the start of a server, and of the side process in which a server checks
its first playbook. The child is a process of its own, with the folder, environment, streams and exit code of the
command, as if it were started alone; what must be loaded anew is started alone. Tested by every test of tests/acceptance,
tests/cluster and tests/server.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
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
import threading
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, Self

ROOT: Final = Path(__file__).parents[1]
MOST: Final = 1 << 20  # bytes of an order
PACKAGES: Final = (
    "noetl.cli",
    "noetl.client",
    "noetl.wiring",
    "noetl.tools",
    "noetl.stores",
    "noetl.server",
    "noetl.worker",
    "noetl.testing",
)
LATE: Final = ("anyio._backends._asyncio", "h11", "httpcore", "uvloop")  # what commands of a server import as they run
OWN: Final = ("PYTHON", "LC_", "LANG", "LD_")  # variables that the interpreter reads when it starts
SIDE: Final = "noetl.server.processes.child"
NEW_MOUNTS: Final = 0x20000  # of unshare(2)
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 18  # of mount(2)
# Hands its order to the process that forks: signals go to the command, and its exit code comes back.
PROGRAM: Final = """#!{python} -IS
import json, os, signal, socket, sys
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect({path!r})
order = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
socket.send_fds(asking, [json.dumps(order).encode()], [0, 1, 2])
child = int(asking.recv(64))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(child, number))
code = int(asking.recv(64) or -9)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""
_start_alone = asyncio.create_subprocess_exec
_lock = threading.Lock()


class Preloaded:
    """The process, and the socket on which it takes orders."""

    def __init__(self, path: str = "", **variables: str) -> None:
        self._environment = {**os.environ, **variables}
        self._variables = own_variables(self._environment)
        self._path = path or str(Path(tempfile.mkdtemp(prefix="noetl-preloaded-"), "orders"))
        if not path:
            self._start()

    def _start(self) -> None:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with listening:
            listening.bind(self._path)
            listening.listen(64)
            given = [str(listening.fileno()), str(os.getpid()), self._path]
            words = [sys.executable, "-m", "tests.preloaded", *given]
            self._process = subprocess.Popen(
                words,
                cwd=ROOT,
                env=self._environment,
                pass_fds=[listening.fileno()],
                stdin=subprocess.DEVNULL,
            )
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
        frozen: Path | None = None,
    ) -> int:
        """Run a command; give its exit code. Closing the socket kills it.

        A frozen folder is mounted read-only for this command, which needs root.
        """
        order = {"arguments": list(arguments), "folder": str(folder or os.getcwd()), "environment": dict(environment)}
        order |= {"frozen": str(frozen)} if frozen else {}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.settimeout(patience_s)
            self._send(asking, order, streams)
            asking.recv(64)  # the number of the process
            return int(asking.recv(64))

    def start(
        self, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], umask: int, text: bool
    ) -> Started:
        """Start a command that goes on by itself, with a pipe for each output."""
        order = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment), "umask": umask}
        (ours, out), (other, err) = os.pipe(), os.pipe()
        try:
            asking, pid = self._order(order, [0, out, err])
        finally:
            os.close(out)
            os.close(err)
        mode = "r" if text else "rb"
        return Started(asking, pid, os.fdopen(ours, mode), os.fdopen(other, mode))

    def start_logged(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], log: int) -> Command:
        """Start a command that goes on by itself and writes its errors to a file."""
        order = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment)}
        return Command(*self._order(order, [0, 1, log]))

    def write_program(self, place: Path) -> None:
        """Write a program `noetl` for shells, whose commands are forked."""
        place.write_text(PROGRAM.format(python=sys.executable, path=self._path))
        place.chmod(0o755)

    def can_start(self, environment: Mapping[str, str]) -> bool:
        """Return whether a new interpreter with these variables would be as this one."""
        return all(self._variables.get(name) == value for name, value in own_variables(environment).items())

    async def start_process(self, *argv: str, **options: Any) -> Process | Forked:
        """Start a process as `create_subprocess_exec` does; fork a side process."""
        if SIDE in argv and self.can_start(options["env"]):
            return await self._start_side(argv[-1], options["env"])
        return await _start_alone(*argv, **options)

    async def _start_side(self, memory: str, environment: Mapping[str, str]) -> Forked:
        """Start a side process of a server."""
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        (orders, ours), (theirs, answers), nothing = os.pipe(), os.pipe(), os.open(os.devnull, os.O_WRONLY)
        try:
            order = {"arguments": [memory], "folder": os.getcwd(), "environment": dict(environment), "is_side": True}
            self._send(asking, order, [orders, answers, nothing])
        finally:
            for end in (orders, answers, nothing):
                os.close(end)
        asking.recv(64)  # the number of the process
        asking.setblocking(False)
        return await Forked.open(asking, ours, theirs)

    def _order(self, order: Mapping[str, Any], streams: Sequence[int]) -> tuple[socket.socket, int]:
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._send(asking, order, streams)
        return asking, int(asking.recv(64))

    def _send(self, asking: socket.socket, order: Mapping[str, Any], streams: Sequence[int]) -> None:
        asking.connect(self._path)
        socket.send_fds(asking, [json.dumps(order).encode()], list(streams))


class Command:
    """A command without pipes, as `subprocess.Popen` shows one."""

    def __init__(self, asking: socket.socket, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._asking = asking

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._asking.settimeout(timeout)
            try:
                self.returncode = int(self._asking.recv(64) or -signal.SIGKILL)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("noetl", timeout or 0) from None
            self._asking.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()


class Started(Command):
    """A command with a pipe for each output."""

    def __init__(self, asking: socket.socket, pid: int, stdout: IO[Any], stderr: IO[Any]) -> None:
        super().__init__(asking, pid)
        self.stdout, self.stderr = stdout, stderr

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Read both outputs to their ends, and wait."""
        found = {self.stdout.fileno(): bytearray(), self.stderr.fileno(): bytearray()}
        left = set(found)
        while left:
            ready = select.select(left, [], [], timeout)[0]
            if not ready:
                raise subprocess.TimeoutExpired("noetl", timeout or 0)
            for one in ready:
                part = os.read(one, 1 << 16)
                found[one] += part
                if not part:
                    left.discard(one)
        self.wait(timeout)
        out, err = map(bytes, found.values())
        return out, err

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()


def start_command(
    *arguments: str, folder: Path, environment: Mapping[str, str], umask: int = -1, text: bool = False
) -> Any:
    """Start `noetl` as `subprocess.Popen` does, with pipes for its outputs."""
    if preloaded().can_start(environment):
        return preloaded().start(arguments, folder=folder, environment=environment, umask=umask, text=text)
    words, pipe = [sys.executable, "-m", "noetl", *arguments], subprocess.PIPE
    return subprocess.Popen(words, cwd=folder, stdout=pipe, stderr=pipe, env=environment, umask=umask, text=text)


class Forked:
    """A forked child, as `asyncio.subprocess.Process` shows one."""

    def __init__(
        self,
        asking: socket.socket,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        reading: asyncio.ReadTransport,
    ) -> None:
        self.stdin, self.stdout = stdin, stdout
        self._asking, self._reading = asking, reading
        self._status = asyncio.get_running_loop().create_task(self._ended())

    @classmethod
    async def open(cls, asking: socket.socket, orders: int, answers: int) -> Forked:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 16)
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(orders, "wb", 0)
        )
        return cls(asking, asyncio.StreamWriter(transport, protocol, None, loop), reader, reading)

    def kill(self) -> None:
        if self._status.done():
            raise ProcessLookupError
        self._asking.shutdown(socket.SHUT_WR)

    async def wait(self) -> int:
        return await asyncio.shield(self._status)

    async def _ended(self) -> int:
        try:
            with self._asking:
                return int(await asyncio.get_running_loop().sock_recv(self._asking, 64) or -signal.SIGKILL)
        finally:
            self._reading.close()
            self.stdin.close()


async def start_process(*argv: str, **options: Any) -> Process | Forked:
    """Start a process as `create_subprocess_exec` does; fork a side process."""
    return await preloaded().start_process(*argv, **options)


def own_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the interpreter reads when it starts."""
    return {name: value for name, value in environment.items() if name.startswith(OWN)}


@cache
def preloaded(**variables: str) -> Preloaded:
    """Return the process of this test run whose interpreter has these variables."""
    return Preloaded(**variables)


def preloaded_for(environment: Mapping[str, str]) -> Preloaded:
    """Return the process whose interpreter is as one with this environment."""
    with _lock:  # tests ask in threads
        return preloaded(**dict(sorted(own_variables(environment).items() - own_variables(os.environ).items())))


def _load() -> None:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(found.name)
    for name in LATE:
        importlib.import_module(name)
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"loading started {len(threads) - 1} threads, which a fork would lose"
    gc.collect()
    gc.freeze()


def _serve(listening: socket.socket, owner: int) -> dict[str, Any]:
    """Fork for each order; return the order, in the process of a command."""
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


def _begin(asking: socket.socket) -> dict[str, Any]:
    data, streams, _, _ = socket.recv_fds(asking, MOST, 3)
    order: dict[str, Any] = json.loads(data)
    child = os.fork()
    if child:
        with contextlib.suppress(OSError):
            asking.send(str(child).encode())
        _wait(asking, child)
    asking.close()
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    if "frozen" in order:
        _freeze(order["frozen"].encode())
    os.chdir(order["folder"])
    if order.get("umask", -1) >= 0:
        os.umask(order["umask"])
    importlib.reload(sys.modules["noetl.server.cache.ids"])  # two servers of a store draw two numbers for their ids
    sys.path[0] = order["folder"]  # as `python -m` sets it
    os.environ.clear()
    os.environ.update(order["environment"])
    return order


def _freeze(folder: bytes) -> None:
    """Mount a folder read-only in this process, as `unshare --mount` and `mount` do."""
    system = ctypes.CDLL(None, use_errno=True)
    kept = os.statvfs(folder).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME)
    done = (
        system.unshare(NEW_MOUNTS)
        or system.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None)
        or system.mount(folder, folder, None, BIND, None)
        or system.mount(b"none", folder, None, REMOUNT | BIND | READ_ONLY | kept, None)
    )
    assert done == 0, os.strerror(ctypes.get_errno())


def _wait(asking: socket.socket, child: int) -> None:
    """Send the exit code of a command; kill it if that is not wanted any more."""
    ended = os.pidfd_open(child)
    if ended not in select.select([ended, asking.fileno()], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        asking.send(str(status).encode())
    os._exit(0)


def _leave(code: object) -> None:
    """End this process without freeing what is loaded: most of a command's time.

    Returns where the interpreter has more to do at the end: to print a message, to wait for threads, to report that an
    output is closed.
    """
    if (code is not None and not isinstance(code, int)) or threading.active_count() > 1:
        return
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit((code or 0) & 0xFF)


if __name__ == "__main__":
    _load()
    path = sys.argv[3]
    given = _serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    if given.get("is_side"):
        from noetl.server.processes.child import serve

        os.setsid()
        serve(int(given["arguments"][0]))
    else:
        from noetl.cli import main

        asyncio.create_subprocess_exec = Preloaded(path).start_process  # type: ignore[assignment]
        sys.argv[1:] = given["arguments"]
        try:
            main()
        except SystemExit as end:
            _leave(end.code)
            raise
        _leave(0)
