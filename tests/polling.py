"""Control plane of two coroutines, `claim` and `report_wait`, for fault tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from noetl.model.errors import NoetlError
from noetl.model.messages import Report
from noetl.model.work import Lease
from noetl.ports.work import Answer, Deliver, Reply, Stop, resolve

Send = Callable[[str, Report, int, Reply], None]  # `report` of a control plane


async def report_wait(send: Send, execution_id: str, report: Report, want: int = 0) -> Answer:
    """Apply a report; if the caller is cancelled, new work returns to the queue."""
    future: asyncio.Future[Answer | Exception] = asyncio.get_running_loop().create_future()
    send(execution_id, report, want, partial(resolve, future))
    answer = await future
    if isinstance(answer, Exception):
        raise answer
    return answer


class PollingPlane:
    """Subscribes by claiming again and again, and reports in a task."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def claim(self, worker: str, pools: Sequence[str], most: int) -> list[Lease]:
        raise NotImplementedError

    async def report_wait(self, execution_id: str, report: Report, want: int) -> Answer:
        raise NotImplementedError

    def subscribe(
        self, worker: str, pools: Sequence[str], capacity: int, deliver: Deliver, stop: Stop
    ) -> PollingSubscription:
        return PollingSubscription(self, worker, pools, capacity, deliver)

    def report(self, execution_id: str, report: Report, want: int, reply: Reply) -> None:
        async def deliver() -> None:
            try:
                answer: Answer | Exception = await self.report_wait(execution_id, report, want)
            except (NoetlError, OSError) as error:
                answer = error
            reply(answer)

        self.spawn(deliver())

    def spawn(self, made: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(made)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class PollingSubscription:
    """Claims while there is capacity."""

    def __init__(self, plane: PollingPlane, worker: str, pools: Sequence[str], capacity: int, deliver: Deliver) -> None:
        self._plane = plane
        self._claims = (worker, pools)
        self._capacity = capacity
        self._deliver = deliver
        self._room = asyncio.Event()
        self._claiming = plane.spawn(self._claim())

    def set_capacity(self, capacity: int) -> None:
        self._capacity = capacity
        self._room.set()

    def close(self) -> None:
        self._claiming.cancel()

    async def _claim(self) -> None:
        while True:
            if self._capacity <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            try:
                leases = await self._plane.claim(*self._claims, self._capacity)
            except (NoetlError, OSError):
                await asyncio.sleep(0.5)
                continue
            self._capacity -= len(leases)
            self._deliver(leases)
