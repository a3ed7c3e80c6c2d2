"""Client of the fork server (the nursery): starts it and requests children.

It also receives how they ended. One nursery serves a worker; when it dies, its children die with it and the next
request starts another. Independent of what runs in a child. Tested in tests/unit/worker/processes/test_children.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from noetl.blobs import pieces
from noetl.environ import public_variables
from noetl.worker.processes.bounds import ProcessFiles
from noetl.worker.processes.fork_server import HEAD, MOST_ANSWER, NOTICE, ORDER, PIECE, Limits

_CHUNK = 1 << 16
# Without such sockets a child has one frame at a time, and nothing can be taken back.
_MESSAGES = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM


class Output:
    """Read end of a child's pipe; passes what arrives to `take` at once."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._read, self.child_end = os.pipe()
        os.set_blocking(self._read, False)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self._read, self.drain)

    def drain(self) -> None:
        """Read everything that is available now."""
        while self._read >= 0:
            try:
                data = os.read(self._read, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self.close()
                return
            self._take(data)

    def close(self) -> None:
        if self._read >= 0:
            asyncio.get_running_loop().remove_reader(self._read)
            os.close(self._read)
            self._read = -1
            self._ended.set_result(None)

    async def end(self) -> None:
        """Wait until no process can write any more."""
        await asyncio.shield(self._ended)


class Child:
    """A process below the nursery, with a channel of frames."""

    def __init__(self, number: int, nursery: Nursery, channel: socket.socket, theirs: socket.socket | None) -> None:
        self.number = number
        self.pid = 0  # until the nursery has told it
        self.exceeded = ""  # the bound for which the nursery ended it
        self.refused = 0  # the error number for which it could not be forked
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._nursery = nursery
        self._channel = channel
        self._theirs = theirs
        self._files: ProcessFiles | None = None
        self._sending: asyncio.Task[None] | None = None
        self._is_listening = False
        self._parts = bytearray()

    @property
    def can_take_back(self) -> bool:
        return self._theirs is not None

    @property
    def is_sending(self) -> bool:
        return self._sending is not None and not self._sending.done()

    def send(self, body: bytes, number: int = 0, mark: int = 0) -> None:
        """Send a frame now, or what does not fit later; a child that is gone says so."""
        data = HEAD.pack(len(body), number, mark) + body
        if len(data) <= PIECE and not self.is_sending:
            with contextlib.suppress(BlockingIOError):
                with contextlib.suppress(ConnectionError):
                    self._channel.send(data)
                return
        self._sending = asyncio.get_running_loop().create_task(self._send(data, self._sending))

    async def _send(self, data: bytes, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        with contextlib.suppress(OSError):
            for start in range(0, len(data), PIECE):
                await asyncio.get_running_loop().sock_sendall(self._channel, data[start : start + PIECE])

    async def receive(self) -> bytes | None:
        """Return the next frame, empty if it is none; None if the child is gone or execs."""
        heard = asyncio.Event()
        self.listen(heard.set)
        while (found := self.frame()) is None:
            if not self._is_listening:
                return None
            heard.clear()
            await heard.wait()
        return found[2]

    def listen(self, hear: Callable[[], None]) -> None:
        """Call `hear` when something can be read."""
        self._is_listening = True
        asyncio.get_running_loop().add_reader(self._channel, hear)

    def _stop_listening(self) -> None:
        if self._is_listening:
            self._is_listening = False
            asyncio.get_running_loop().remove_reader(self._channel)

    def frame(self) -> tuple[int, int, bytes] | None:
        """Return a frame that has come, with its numbers; empty if it is none."""
        data = self._parts
        while self._is_listening:
            try:
                part = self._channel.recv(PIECE)
            except BlockingIOError:
                return None
            except OSError:
                part = b""
            if not part:
                self._stop_listening()
                return None
            data += part
            size, number, more = HEAD.unpack_from(data) if len(data) >= HEAD.size else (MOST_ANSWER + 1, 0, 0)
            size += HEAD.size
            if size > HEAD.size + MOST_ANSWER or len(data) > size:
                self._parts = bytearray()
                return 0, 0, b""
            if len(data) == size:
                self._parts = bytearray()
                return number, more, bytes(memoryview(data)[HEAD.size :])
        return None

    def unread(self) -> set[int]:
        """Take back the frames that the child has not read; return their numbers.

        It may read one in between, so they need not be the last ones.
        """
        numbers: set[int] = set()
        while self._theirs is not None:
            try:
                head = self._theirs.recv(HEAD.size, socket.MSG_DONTWAIT)
            except OSError:  # nothing is left
                break
            if len(head) < HEAD.size:
                break
            numbers.add(HEAD.unpack(head)[1])
        return numbers

    def learn(self, what: bytes, value: int) -> None:
        """Take a notice of the nursery: its pid, why it has none, or an exceeded bound."""
        if what == b"B":
            self.pid = value
        elif what == b"F":
            self.refused = value
        else:
            self.exceeded = {b"P": "processes", b"D": "disk"}[what]

    def is_alone(self, *, one_thread: bool) -> bool:
        """Return whether nothing that it started still runs, seen from outside."""
        if self._files is None and self.pid > 0:
            self._files = ProcessFiles(self.pid)
        return self._files is not None and self._files.is_alone(one_thread=one_thread)

    @property
    def is_over(self) -> bool:
        return self.status.done()

    async def end(self) -> int:
        """Wait for its end; return the exit code, or minus the signal's number."""
        return await asyncio.shield(self.status)  # a waiting caller may be cancelled, the status must not be

    def kill(self) -> None:
        """Kill it with everything that it started; `end` returns when that is done."""
        if not self.status.done():
            self._nursery.order(b"K", self.number)

    def close(self) -> None:
        self._stop_listening()
        self._channel.close()
        if self._theirs is not None:
            self._theirs.close()
        if self._files is not None:
            self._files.close()


class Nursery:
    """Starts children and receives their exit statuses."""

    def __init__(self, limits: Limits) -> None:
        self._limits = json.dumps(limits)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._heard = b""
        self._children: dict[int, Child] = {}
        self._numbers = 0
        self.is_closed = False

    def spawn(self, stdin: int, stdout: int, stderr: int, *, is_warm: bool) -> Child:
        """Fork a child with these streams, which the caller closes; call `start` before.

        A warm one runs Python code, the other becomes a program.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, _MESSAGES)
        ours.setblocking(False)
        self._numbers += 1
        is_kept = is_warm and _MESSAGES != socket.SOCK_STREAM
        child = Child(self._numbers, self, ours, theirs if is_kept else None)
        self._children[child.number] = child
        self.order(b"W" if is_warm else b"S", child.number, [theirs.fileno(), stdin, stdout, stderr])
        if not is_kept:
            theirs.close()
        return child

    def order(self, what: bytes, number: int, fds: list[int] | None = None) -> None:
        """Send an order: tiny and read at once, so the buffer is never full for long."""
        if self._control is None:
            return
        self._control.setblocking(True)
        try:
            socket.send_fds(self._control, [ORDER.pack(what, number)], fds or [])
        except OSError:
            self._lost()
        finally:
            if self._control is not None:
                self._control.setblocking(False)

    def start(self) -> None:
        """Start the nursery if it is not running; a closed one stays closed."""
        if self.is_closed:
            raise RuntimeError("this worker's child processes are closed")
        if self._process is not None and self._process.poll() is None and self._control is not None:
            return
        self._lost()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        argv = [sys.executable, "-P", "-m", "noetl.worker.processes.fork_server", str(theirs.fileno()), self._limits]
        with theirs:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a signal to the worker's group must not reach the nursery, which cleans up
                env=public_variables(),
            )
        asyncio.get_running_loop().add_reader(self._control, self._hear)

    def _hear(self) -> None:
        assert self._control is not None
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        self._heard += data
        while len(self._heard) >= NOTICE.size:
            what, number, value = NOTICE.unpack_from(self._heard)
            self._heard = self._heard[NOTICE.size :]
            if what == b"E":
                self._end(number, value)
            elif number in self._children:
                self._children[number].learn(what, value)

    def _end(self, number: int, status: int) -> None:
        child = self._children.pop(number, None)
        if child is not None and not child.status.done():
            child.status.set_result(status)

    def _lost(self) -> None:
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
            self._control = None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            self._process = None
        self._heard = b""
        for number in list(self._children):
            self._end(number, -signal.SIGKILL)

    async def close(self) -> None:
        """End all children, for good; return when the nursery is gone."""
        self.is_closed = True
        process, control = self._process, self._control
        if process is None or control is None:
            return
        asyncio.get_running_loop().remove_reader(control)
        control.close()
        self._control = None
        await asyncio.to_thread(process.wait)
        self._lost()


async def told(frame: bytes) -> dict[str, Any]:
    """Decode a child's answer by the standard JSON, which keeps big numbers exact."""
    found: dict[str, Any] = await pieces.decoded(frame, json.loads)
    return found
