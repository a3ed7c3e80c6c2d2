"""What an operator asks of a store: to make again what follows from the log.

Every port has one conformance suite that all of its adapters pass (tests/conformance).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from noetl.model.letters import DeadLetter
from noetl.model.messages import AnyMessage
from noetl.model.work import WorkItem


class Beside(msgspec.Struct, frozen=True):
    """What is kept beside the log of an execution, and follows from it."""

    execution_id: str
    last_seq: int
    projection: Mapping[str, Any] = {}
    work: tuple[tuple[int, WorkItem], ...] = ()  # with the time since when, the oldest first
    timers: tuple[tuple[str, int], ...] = ()
    inbox: tuple[tuple[str, AnyMessage], ...] = ()  # what it has sent to others or to itself
    dead: tuple[str, ...] = ()  # work of which no delivery is left
    letters: tuple[DeadLetter, ...] = ()  # to put in; `letters_of` gives those that are there


class Open(msgspec.Struct, frozen=True):
    """An execution that has not ended, or of which a dead letter is being replayed."""

    number: int  # its place among all executions
    execution_id: str
    bare: bool  # no work, no timer and no message is there for it, and it does not wait for anybody


class Upkeep(Protocol):
    """A store whose tables can be compared with its log, and made again."""

    async def logged(self, after: int, most: int) -> list[tuple[int, str]]:
        """Give executions that have a log, in the order of their first events, each with the place of that event."""

    async def beside(self, execution_id: str) -> Beside:
        """Give what is kept beside a log, as it is at one moment; of the messages those that are for this execution."""

    async def open(self, after: int, before: int, most: int) -> list[Open]:
        """Give executions that have not ended, or whose dead letters are being replayed, after a place, in order.

        Only those that were started by `before`.
        """

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool:
        """Tell whether this holder is the one who does something until then; another's term must be over first."""

    async def letters_of(self, execution_id: str) -> list[DeadLetter]:
        """Give the dead letters of an execution, by id."""

    async def empty(self, epoch: int) -> None:
        """Take out everything that follows from the log; no lease gets an epoch from here on that is not above this one."""

    async def put_beside(self, rows: Sequence[Beside]) -> None:
        """Put rows in where nothing is. All work is queued."""
