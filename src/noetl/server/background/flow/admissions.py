"""Admit executions that `concurrency` or `rate` of their playbook keeps waiting.

Looks when one with a limit was queued or has ended on this server, when a rate allows the next, and now and then, since other
servers end executions too. The store decides in the transaction of the admission, so that several servers never admit too
many. Tested in tests/conformance/test_limits.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from noetl.model.errors import NoetlError, log_level
from noetl.model.messages import Admit, AnyMessage, Cancel
from noetl.ports import Audit, AuditEntry, Clock, History, WorkQueue
from noetl.ports.work import Answer
from noetl.server.sequencer.commit_hooks import CommitHooks

_log = logging.getLogger(__name__)
_EVERY_S: Final = 1.0
_PAGE: Final = 100
Submit = Callable[[str, AnyMessage, Audit], Awaitable[Answer]]


class Admissions:
    """Admit waiting executions, the oldest of each key first."""

    def __init__(self, queue: WorkQueue, rows: History, submit: Submit, clock: Clock, hooks: CommitHooks) -> None:
        self._queue = queue
        self._rows = rows
        self._submit = submit
        self._clock = clock
        self._wake = asyncio.Event()
        hooks.register(slot=self._wake.set)

    async def run(self) -> None:
        """Admit until cancelled."""
        while True:
            self._wake.clear()
            pause = _EVERY_S
            try:
                pause = await self.look()
            except NoetlError as error:
                _log.log(log_level(error), "Waiting executions are admitted later: %s", error)
            except Exception as error:  # noqa: BLE001 - it must not end silently
                _log.exception("Admitting executions failed; it is tried again", exc_info=error)
            await self._sleep(pause)

    async def look(self) -> float:
        """Admit every execution that its limits allow; return when to look again."""
        pauses = [await self._admit(key) for key in await self._queue.queued_keys()]
        return min([_EVERY_S, *pauses])

    async def _admit(self, key: str) -> float:
        """Admit the executions of a key; return when the next may begin."""
        while page := await self._queue.queued(key, _PAGE):
            for row in page:
                wait = await self._turn(row["slot"])
                if wait > 0:
                    return wait
                name = row["execution_id"]
                answer = await self._submit(name, Admit(f"admit:{name}:{row['last_seq']}"), None)
                if answer.status == "full":
                    await self._replace(key, page)
                    return _EVERY_S
            if len(page) < _PAGE or all(row["status"] == "paused" for row in page):
                break
        return _EVERY_S

    async def _turn(self, slot: Mapping[str, Any]) -> float:
        """Return the seconds until the rate of an execution allows it to begin."""
        rate = slot.get("rate")
        if rate is None:
            return 0.0
        at = await self._queue.turn_at(rate["group"])
        first = at / 1_000_000 - (int(rate["burst"]) - 1) / float(rate["per_second"])
        return max(0.0, first - self._clock.now() / 1000)

    async def _replace(self, key: str, page: list[Mapping[str, Any]]) -> None:
        """Cancel older executions where `on_limit` says that a new one replaces them.

        Keys are shared by all playbooks: one that does not replace others is not replaced by them either.
        """
        newest = page[-1]
        if newest["slot"].get("on_limit") != "cancel_running":
            return
        running = await self._queue.holders(key)
        names = [*running, *(row["execution_id"] for row in page)]
        excess, by = len(names) - int(newest["slot"]["limit"]), newest["execution_id"]
        path = (await self._rows.execution(by) or {}).get("path")
        for name in names[:-1]:
            if excess <= 0:
                return
            if await self._is_replaceable(name, path):
                excess -= 1
                reason = f"replaced by execution {by} (`concurrency` with the key {key!r})"
                act = AuditEntry(self._clock.now(), f"concurrency:{by}", "execution.cancel", name, {"key": key})
                await self._submit(name, Cancel(f"replace:{name}", reason, by="concurrency"), act)

    async def _is_replaceable(self, name: str, path: Any) -> bool:
        """Return whether an execution of the playbook `path` may replace another."""
        row = await self._rows.execution(name) or {}
        return row.get("path") == path or (row.get("slot") or {}).get("on_limit") == "cancel_running"

    async def _sleep(self, seconds: float) -> None:
        woken = asyncio.ensure_future(self._wake.wait())
        slept = asyncio.ensure_future(self._clock.sleep(max(seconds, 0.001)))
        try:
            await asyncio.wait((woken, slept), return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
            slept.cancel()
