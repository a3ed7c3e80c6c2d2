"""Event loop in virtual time: it advances to the next due timer without waiting.

    run(main)                     # sleeps and time-outs in `main` take no real time, in their right order

Time stands still while a thread announced by `threads()` works. Tested in tests/simulation/test_virtual_time.py.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, TypeVar
from weakref import WeakSet

Result = TypeVar("Result")
BEGIN = 1_800_000_000_000  # start time of every run, in milliseconds since the epoch
_LONGEST_REAL_S = 30.0  # limit for a thread


class StuckError(RuntimeError):
    """Nothing is due, now or later, and a task still waits."""


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.threads = 0
        self.leap: Callable[[float], float] | None = None  # next due time → time to advance to

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if self.threads:
            found = super().select(_LONGEST_REAL_S)
            if not found:
                raise StuckError(f"a thread took longer than {_LONGEST_REAL_S:g} s")
            return found
        if timeout is None:
            raise StuckError("deadlock: a task waits, and nothing is scheduled")
        due = self.time + timeout
        self.time = due if self.leap is None else self.leap(due)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop in virtual time."""

    def __init__(self) -> None:
        self._pretended = _Selector()
        self.scheduled: WeakSet[asyncio.TimerHandle] = WeakSet()
        super().__init__(self._pretended)
        self._clock_resolution = (
            1e-6  # a finer one is lost in the sum after a hundred days, and nothing would ever be due
        )

    def time(self) -> float:
        return self._pretended.time

    def call_at(  # type: ignore[override]  # the type of the arguments does not matter here
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        self.scheduled.add(handle)
        return handle

    def leap_by(self, leap: Callable[[float], float]) -> None:
        """Set a callback that maps the next due time to the time to advance to."""
        self._pretended.leap = leap

    async def shutdown_default_executor(self, *timeout: float | None) -> None:  # Python 3.12 and later give one
        with self.thread():
            await super().shutdown_default_executor(*timeout)

    @contextmanager
    def thread(self) -> Iterator[None]:
        """Stop virtual time while a thread works."""
        self._pretended.threads += 1
        try:
            yield
        finally:
            self._pretended.threads -= 1


@contextmanager
def threads() -> Iterator[None]:
    """Stop virtual time while a thread works; no effect in real time."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        with loop.thread():
            yield
    else:
        yield


class VirtualClock:
    """Clock of a virtual loop; `jump` moves it forward or back."""

    def __init__(self) -> None:
        self._offset = 0

    def now(self) -> int:
        return BEGIN + round(asyncio.get_running_loop().time() * 1000) + self._offset

    def civil(self) -> int:
        return self.now()

    @property
    def report(self) -> str:
        return "ok"

    def jump(self, ms: int) -> None:
        self._offset += ms

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(main: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())
