"""Metrics on a port of their own, without a token: for a scraper of workers.

It serves one path, on loopback unless the settings name another address. Tested in tests/unit/observe/test_exporter.py.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from noetl.settings import MetricsSettings

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_log = logging.getLogger(__name__)


@asynccontextmanager
async def exporting(text: Callable[[], Awaitable[bytes]], place: MetricsSettings) -> AsyncIterator[None]:
    """Serve metrics while the block runs, if they have a port of their own.

    A port that cannot be used is a warning: the process goes on with its work.
    """
    host, port, path = place.host, place.own_port, place.path
    if not port:
        yield
        return
    from aiohttp import web

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=await text(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get(path, answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
            _log.debug("metrics at http://%s:%s%s", host, port, path)
        except OSError as error:
            _log.warning("No metrics at %s:%s (%s). Choose another NOETL_METRICS_PORT.", host, port, error.strerror)
        yield
    finally:
        await runner.cleanup()
