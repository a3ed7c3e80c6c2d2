"""Call pure functions in child processes, with a deadline and a memory limit.

What hostile input could make slow or large runs here: the event loop never waits for it, and a call that takes too long
is killed. Time is the processor time of the call: a busy machine refuses no call for its own slowness. Children start on demand and are reused. Each has an environment without secrets and no file of the server.
Tested in tests/unit/server/processes/test_side.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import pickle
import signal
import subprocess
import sys
from heapq import heappop, heappush
from typing import Any, Final

from noetl.model.errors import Overloaded
from noetl.server.processes.child import LENGTH

_PUBLIC: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_START_S: Final = 30.0  # a child loads a function on its first call
_PATIENCE: Final = 10  # times its deadline, a call may wait for the processor
_MOST_ANSWER: Final = 64 << 20
_SMALL: Final = 1 << 16  # bytes of an order for which another may overtake it
_MOST_OVERTAKEN: Final = 64  # orders that may overtake a large one
_MOST_WAITING: Final = 200


class TimedOut(Exception):  # noqa: N818 - it is an outcome, not a bug
    """A call used up its time."""


class Crashed(Exception):  # noqa: N818 - it is an outcome, not a bug
    """A call raised an exception, or its process ended."""


class OutOfMemory(Crashed):
    """A call needed more memory than its process may have."""


class SideProcesses:
    """Child processes of a server, started on demand; small orders go first."""

    def __init__(self, most: int = 2, memory: int = 1 << 30) -> None:
        self._memory = memory
        self._most = self._free = most
        self._is_closed = False
        self._replacing: set[asyncio.Task[None]] = set()
        self._idle: list[_Side] = []
        self._all: set[_Side] = set()
        self._numbers = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    async def run(self, function: str, *arguments: Any, deadline_s: float) -> Any:
        """Call `package.module:function` in a child and return its result.

        Arguments and result are data that pickle knows. The deadline is processor time, counted from when the function
        is loaded. A caller that is cancelled ends its child. Raises TimedOut, Crashed and OutOfMemory, and Overloaded if
        many calls wait.
        """
        order = pickle.dumps((function, arguments, deadline_s), 5)
        await self._enter(len(order))
        try:
            side = await self._begin(order)
            spare = asyncio.get_running_loop().call_later(deadline_s / 2, self._replace, function)
            try:
                answer = await side.answer(deadline_s)
            except BaseException as error:
                await self._discard(side)
                if isinstance(error, TimedOut) and not self._replacing:
                    self._replace(function)  # on a busy machine the timer has not had its turn
                raise
            finally:
                spare.cancel()
        finally:
            self._leave()
        self._idle.append(side)
        kind, result = pickle.loads(answer)  # noqa: S301 - our own code wrote it
        if kind == "memory":
            raise OutOfMemory(f"{function} needs more than {self._memory >> 20} MiB of memory")
        if kind == "error":
            raise Crashed(f"{function} failed:\n{result}")
        return result

    async def close(self) -> None:
        """End all children, and wait for it."""
        self._is_closed = True
        for task in self._replacing:
            task.cancel()
        await asyncio.gather(*self._replacing, return_exceptions=True)
        self._idle.clear()
        await asyncio.gather(*map(self._discard, tuple(self._all)))

    def _replace(self, function: str) -> None:
        """Start a child in place of one that may be killed: the next call need not wait."""
        if not self._is_closed and not self._idle and len(self._all) <= self._most:
            task = asyncio.get_running_loop().create_task(self._warm_up(function))
            self._replacing.add(task)
            task.add_done_callback(self._replacing.discard)

    async def _warm_up(self, function: str) -> None:
        side = await self._start()
        try:
            is_ready = await side.begin(pickle.dumps((function, None, _START_S), 5))
            await side.answer(_START_S)
        except BaseException as error:
            await self._discard(side)
            if isinstance(error, Crashed | TimedOut):
                return  # the next call reports it
            raise
        if is_ready:
            self._idle.append(side)

    async def _begin(self, order: bytes) -> _Side:
        """Return a child that has loaded the function of an order."""
        while True:
            if not self._idle and self._replacing:
                await asyncio.wait(self._replacing, return_when=asyncio.FIRST_COMPLETED)
            is_new = not self._idle
            side = await self._start() if is_new else self._idle.pop()
            try:
                if await side.begin(order):
                    return side
            except BaseException:
                await self._discard(side)
                raise
            await self._discard(side)  # an idle child may have ended
            if is_new:
                raise Crashed("the process did not start")

    async def _start(self) -> _Side:
        argv = [sys.executable, "-P", "-B", "-m", "noetl.server.processes.child", str(self._memory)]
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a signal to the server's group must not reach it
            env={name: os.environ[name] for name in _PUBLIC if name in os.environ},
        )
        side = _Side(process)
        self._all.add(side)
        return side

    async def _discard(self, side: _Side) -> None:
        self._all.discard(side)
        await asyncio.shield(side.kill())

    async def _enter(self, size: int) -> None:
        if self._free:
            self._free -= 1
            return
        if len(self._waiting) >= _MOST_WAITING:
            raise Overloaded
        turn = asyncio.get_running_loop().create_future()
        number = next(self._numbers)
        heappush(self._waiting, (number + min(4 * (size // _SMALL), _MOST_OVERTAKEN), number, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._leave()  # its turn came while it was cancelled
            raise

    def _leave(self) -> None:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class _Side:
    """One child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def begin(self, order: bytes) -> bool:
        """Send an order; return whether the child has loaded its function."""
        assert self._process.stdin is not None
        if self._process.stdin.is_closing():  # the loop has noticed that the child ended
            return False
        try:
            self._process.stdin.write(LENGTH.pack(len(order)) + order)
            await self._process.stdin.drain()
            async with asyncio.timeout(_START_S):
                return await self._frame() == b""
        except TimeoutError:
            raise Crashed(f"the process did not start within {_START_S:g} s") from None
        except (ConnectionError, asyncio.IncompleteReadError):
            return False

    async def answer(self, deadline_s: float) -> bytes:
        try:
            async with asyncio.timeout(deadline_s * _PATIENCE):
                return await self._frame()
        except TimeoutError:
            raise TimedOut(f"the call did not end within {deadline_s * _PATIENCE:g} s") from None
        except (ConnectionError, asyncio.IncompleteReadError):
            status = await self._process.wait()
        if status == -signal.SIGPROF:
            raise TimedOut(f"the call did not end within {deadline_s:g} s of processor time")
        raise Crashed(f"the process ended with status {status}")

    async def _frame(self) -> bytes:
        assert self._process.stdout is not None
        (size,) = LENGTH.unpack(await self._process.stdout.readexactly(LENGTH.size))
        if size > _MOST_ANSWER:
            raise Crashed(f"the answer is larger than {_MOST_ANSWER >> 20} MiB")
        return await self._process.stdout.readexactly(size)

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
