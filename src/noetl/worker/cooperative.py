"""Run calls of the engine so that a long evaluation gives way to the event loop.

A worker that shares its process with a server must not hold it up, and a cancelled task must not be evaluated to its end.
A call runs on a stack of its own (a greenlet): at each slice of an evaluation it is put aside, and goes on after
everything else had its turn. Tested in tests/unit/worker/test_cooperative.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from greenlet import getcurrent, greenlet

from noetl.expr.runtime.running import RUNNING

Value = TypeVar("Value")
_MOST_IDLE: Final = 8  # stacks that are kept: a new one costs more than a short call


async def directly(call: Callable[..., Value], *arguments: Any) -> Value:
    """Return what a call returns that evaluates nothing: it needs no stack of its own."""
    return call(*arguments)


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
        RUNNING.divide(here.switch)
        found = stack.switch(here, call, arguments)
        while not found:  # it was put aside
            RUNNING.divide(None)
            try:
                async with self._turn:
                    await asyncio.sleep(0)
            except BaseException:
                stack.throw()  # it unwinds
                raise
            RUNNING.divide(here.switch)
            found = stack.switch()
        RUNNING.divide(None)
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(stack)
        error, value = found.pop(), found.pop()  # the idle stack keeps neither
        if error is not None:
            raise error
        return cast("Value", value)


def _serve(here: greenlet, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Make calls; one that switches back without value and error was put aside."""
    while True:
        try:
            ended = [call(*arguments), None]
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            ended = [None, error]
        del call, arguments
        here, call, arguments = here.switch(ended)
