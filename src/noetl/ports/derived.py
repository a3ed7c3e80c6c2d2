"""Port of the derived tables. Suite: tests/conformance/test_derived_tables.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from noetl.model.letters import DeadLetter
from noetl.model.messages import AnyMessage
from noetl.model.work import WorkItem


class DerivedRows(msgspec.Struct, frozen=True):
    """Derived rows of an execution: everything that follows from its log."""

    execution_id: str
    last_seq: int
    projection: Mapping[str, Any] = {}
    work: tuple[tuple[int, WorkItem], ...] = ()  # with its creation time, oldest first
    timers: tuple[tuple[str, int], ...] = ()
    inbox: tuple[tuple[str, AnyMessage], ...] = ()  # messages that it sent to executions, also to itself
    dead: tuple[str, ...] = ()  # ids of work without a delivery left
    letters: tuple[DeadLetter, ...] = ()  # to insert; `letters_of` returns the stored ones


class Open(msgspec.Struct, frozen=True):
    """Execution that has not ended, or one of whose dead letters is being replayed."""

    number: int  # position among all executions
    execution_id: str
    bare: bool  # it has no work, timer or message, and it is neither waiting nor paused


class DerivedTables(Protocol):
    """Access to the derived tables of a store."""

    async def logged(self, after: int, most: int) -> list[tuple[int, str]]:
        """List executions with a log after a position, each with its position, in order."""

    async def rows(self, execution_id: str) -> DerivedRows:
        """Read an execution's derived rows, and messages to it, in one snapshot."""

    async def open(self, after: int, before: int, most: int) -> list[Open]:
        """List open executions after a position that started by `before`, in order."""

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool:
        """Take or renew a duty until a time; False while another holder has it."""

    async def letters_of(self, execution_id: str) -> list[DeadLetter]:
        """List the dead letters of an execution by id."""

    async def empty(self, epoch: int) -> None:
        """Delete all derived rows; every later lease gets an epoch above this one."""

    async def skip_epochs(self) -> None:
        """Skip epochs, so that no lease of a lost history has one of the next."""

    async def put_rows(self, rows: Sequence[DerivedRows]) -> None:
        """Insert derived rows where there are none. All work is queued."""
