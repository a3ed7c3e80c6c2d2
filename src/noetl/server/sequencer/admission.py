"""Bounded admission: the sequencer's backpressure.

Tested in tests/unit/server/sequencer/test_admission.py.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class AdmissionQueue(Generic[T]):
    """Bounded admission queue with backpressure.

    When full, groups wait in FIFO order and are refused after `timeout_s`. A group is admitted as a whole as soon as
    one place is free. Every item leaves by itself.
    """

    def __init__(
        self,
        places: int,
        timeout_s: float | None,
        admit: Callable[[Sequence[T]], None],
        refuse: Callable[[Sequence[T]], None],
    ) -> None:
        self._inside: set[T] = set()
        self._places = places
        self._timeout_s = timeout_s
        self._admit = admit
        self._refuse = refuse
        self._waiting: deque[Sequence[T]] = deque()

    def __len__(self) -> int:
        return len(self._inside)

    def enter(self, group: Sequence[T]) -> None:
        """Admit a group now if a place is free, else when one is."""
        if not self._waiting and len(self._inside) < self._places:
            self._inside.update(group)
            self._admit(group)
            return
        self._waiting.append(group)
        if self._timeout_s is not None:
            asyncio.get_running_loop().call_later(self._timeout_s, self._give_up, group)

    def leave(self, item: T) -> None:
        """Free a place for the first waiting group."""
        self._inside.discard(item)
        while self._waiting and len(self._inside) < self._places:
            group = self._waiting.popleft()
            self._inside.update(group)
            self._admit(group)

    def withdraw(self, group: Sequence[T]) -> bool:
        """Remove a waiting group; return False if it was admitted or refused."""
        if not any(one is group for one in self._waiting):
            return False
        self._waiting = deque(one for one in self._waiting if one is not group)
        return True

    def drain(self) -> Iterator[T]:
        """Remove and yield everything that is admitted or waiting."""
        items = [*self._inside, *(item for group in self._waiting for item in group)]
        self._inside.clear()
        self._waiting.clear()
        yield from items

    def _give_up(self, group: Sequence[T]) -> None:
        if self.withdraw(group):
            self._refuse(group)
