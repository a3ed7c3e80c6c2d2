"""Doorbell over LISTEN and NOTIFY, on its own connection.

No commit waits for it, and it does not wait for the disk. Signals in quick succession are coalesced. A lost connection
is opened again; until then no signal arrives, and waiting processes poll. Tested in
tests/unit/doorbells/test_pg_notify.py.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from noetl.model.errors import NoetlError, log_level
from noetl.stores.postgres.database import SESSION, connect, shown, trouble

_log = logging.getLogger(__name__)
_CHANNEL = "noetl"
_GAP_S = 0.02  # between two signals of one process: each is a transaction
_AGAIN_S = 1.0  # before a lost connection is opened again


class PgNotify:
    """Signals through a PostgreSQL channel."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._name = shown(url)
        self._rung = asyncio.Event()
        self._heard = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Wake the other processes soon."""
        self._rung.set()
        self._start()

    async def heard(self, within_s: float) -> bool:
        """Wait for the signal of another process, up to a timeout."""
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
                _log.log(log_level(error), "the doorbell is disconnected; servers poll until it is back: %s", error)
            await asyncio.sleep(_AGAIN_S)

    async def _session(self) -> None:
        # A signal that a crash loses does no harm.
        connection = await connect(self._url, server_settings=SESSION | {"synchronous_commit": "off"})
        try:
            own = connection.get_server_pid()
            await connection.add_listener(_CHANNEL, lambda _connection, pid, *_: self._receive(pid == own))
            self._heard.set()  # signals may have been missed before
            while not connection.is_closed():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_S):
                        await self._rung.wait()
                if self._rung.is_set():
                    self._rung.clear()
                    await connection.execute("SELECT pg_notify($1, '')", _CHANNEL)
                    await asyncio.sleep(_GAP_S)
        except Exception as error:
            known = trouble(self._name, error)
            if known is not None:
                raise known from None
            raise
        finally:
            connection.terminate()

    def _receive(self, is_own: bool) -> None:
        if not is_own:
            self._heard.set()
