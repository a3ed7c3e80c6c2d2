"""Run calls of the engine so that a long evaluation gives way to the event loop.

A worker that shares its process with a server must not hold it up, and a cancelled task must not be evaluated to its end.
A call runs on a stack of its own (a greenlet): at each slice of an evaluation it is put aside, and goes on after
everything else had its turn. Tested in tests/unit/worker/test_cooperative.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

from greenlet import getcurrent, greenlet

from noetl.expr.runtime.running import RUNNING

Value = TypeVar("Value")
_MOST_IDLE: Final = 8  # stacks that are kept: a new one costs more than a short call


class _Ended(NamedTuple):
    value: Any
    error: BaseException | None


class Cooperation:
    """Calls of one worker; of those that were put aside, one goes on at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._idle: list[greenlet] = []

    async def run(self, call: Callable[..., Value], *arguments: Any) -> Value:
        """Return what a call returns. Cancelling the caller ends the call at its slice."""
        here = getcurrent()
        stack = self._idle.pop() if self._idle else greenlet(_serve)
        stack.gr_context = here.gr_context
        found = RUNNING.resume(lambda: stack.switch(here, call, arguments), here.switch)
        while not found:  # it was put aside
            try:
                async with self._turn:
                    await asyncio.sleep(0)
            except BaseException:
                RUNNING.resume(stack.throw, here.switch)  # it unwinds
                raise
            found = RUNNING.resume(stack.switch, here.switch)
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(stack)
        if found.error is not None:
            raise found.error
        return cast("Value", found.value)


def _serve(here: greenlet, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Make calls; one that switches back without an end was put aside."""
    while True:
        try:
            ended = _Ended(call(*arguments), None)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            ended = _Ended(None, error)
        del call, arguments
        here, call, arguments = here.switch(ended)
