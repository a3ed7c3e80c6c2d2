"""A worker of the same process asks for work once and for all: it is told by a call whenever there is some for it.

It says how much it has room for; the queue is looked into for it only where there may be something that it was not given.
Hands out nothing itself. Tested in tests/unit/server/test_standing.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from noetl.model.errors import StoreUnavailable
from noetl.model.work import Lease
from noetl.server.inbox import Ask, Takes

_log = logging.getLogger(__name__)


class Line(Protocol):
    """Those who ask, in their order."""

    def ask(self, ask: Ask) -> None: ...

    def ask_no_more(self, ask: Ask) -> None: ...


class Standing:
    """What such a worker asks for; it stands where others wait for the answer to theirs."""

    def __init__(self, worker: str, takes: Takes, most: int, told: Callable[[list[Lease]], None], line: Line) -> None:
        self._told = told
        self._line = line
        self._ask = Ask(worker, takes[0], most, self, True, takes[1])
        self._least = most  # that it was asked for since the last answer: with less, there was no more
        self._look()

    def room(self, free: int) -> None:
        """Say how much there is room for now."""
        ask = self._ask
        had, ask.most = ask.most, free
        if had <= 0 < free:
            self._least = free
            self._look()
        elif free < self._least:
            self._least = free

    def end(self) -> None:
        """Ask for nothing any more; what is on its way goes back to the queue."""
        self._ask.most = 0
        self._line.ask_no_more(self._ask)

    def done(self) -> bool:
        """Whether nothing is wanted now."""
        return self._ask.most <= 0

    def set_result(self, leases: list[Lease], /) -> None:
        """Take what there is."""
        ask = self._ask
        is_all = len(leases) < self._least
        ask.most = self._least = ask.most - len(leases)
        self._told(leases)
        if not is_all and ask.most > 0:  # it has more room than it was looked for with
            self._look()

    def _look(self) -> None:
        try:
            self._line.ask(self._ask)
        except StoreUnavailable as error:
            _log.warning("no work can be asked for any more: %s", error)
