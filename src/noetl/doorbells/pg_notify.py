"""The doorbell of PostgreSQL: LISTEN and NOTIFY on a connection of its own, so that no commit waits for it, nor it for the disk.

Rings that come close together are one. A lost connection is made anew; until then nobody is heard, and those who wait look
by themselves. Tested in tests/unit/stores/test_pg_notify.py.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from noetl.model.errors import NoetlError
from noetl.stores.postgres_database import SESSION, connect, shown, trouble

if TYPE_CHECKING:
    import asyncpg

_log = logging.getLogger(__name__)
_CHANNEL = "noetl"
_GAP_S = 0.02  # between two rings of one process: each is a transaction
_AGAIN_S = 1.0  # after a connection was lost


class PgNotify:
    """Rings and hears through the database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._name = shown(url)
        self._rung = asyncio.Event()
        self._heard = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Tell the others, soon."""
        self._rung.set()
        self._start()

    async def heard(self, within_s: float) -> bool:
        """Wait until another process rings, at most that long."""
        self._start()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._heard.wait()
        found = self._heard.is_set()
        self._heard.clear()
        return found

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="noetl-doorbell")

    async def _work(self) -> None:
        while True:
            try:
                await self._session()
            except NoetlError as error:
                _log.warning("the doorbell is silent: %s", error)
            await asyncio.sleep(_AGAIN_S)

    async def _session(self) -> None:
        # A ring that a crash loses is missed by nobody.
        connection = await connect(self._url, server_settings=SESSION | {"synchronous_commit": "off"})
        try:
            await connection.add_listener(_CHANNEL, self._receive)
            self._heard.set()  # whatever was rung while nobody listened
            while not connection.is_closed():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_S):
                        await self._rung.wait()
                if self._rung.is_set():
                    self._rung.clear()
                    await connection.execute("SELECT pg_notify($1, '')", _CHANNEL)
                    await asyncio.sleep(_GAP_S)
        except Exception as error:
            told = trouble(self._name, error)
            if told is not None:
                raise told from None
            raise
        finally:
            connection.terminate()

    def _receive(self, connection: asyncpg.Connection, pid: int, *_: Any) -> None:
        if pid != connection.get_server_pid():
            self._heard.set()
