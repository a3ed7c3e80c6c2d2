"""Push metrics to a Pushgateway, from where a scraper cannot reach the process.

A group of metrics is `job="noetl"` with the name of the process as `instance`; it is deleted when the process stops. A
gateway that is gone is one warning per outage. Tested in tests/unit/observe/test_pushing.py.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import quote

from noetl.observe.export.target import ExportError
from noetl.observe.export.web import Poster
from noetl.observe.exporter import CONTENT_TYPE
from noetl.settings import MetricsSettings

_log = logging.getLogger(__name__)


@asynccontextmanager
async def pushing(text: Callable[[], Awaitable[bytes]], place: MetricsSettings, instance: str) -> AsyncIterator[None]:
    """Push metrics while the block runs, if the settings name a gateway."""
    if not place.push_url or not place.enabled:
        yield
        return
    gateway = _gateway(place.push_url)
    group = f"/metrics/job/noetl/{_label(instance)}"
    task = asyncio.create_task(_push(text, gateway, group, place.push_s), name="noetl-metrics-push")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        try:
            await gateway.post(group, b"", method="DELETE")
        except ExportError as error:
            _log.info("The metrics of this process stay at the gateway: %s", error)
        await gateway.close()


def _label(instance: str) -> str:
    """Return the part of a path that names an instance, which may have a slash."""
    if "/" not in instance:
        return f"instance/{quote(instance, safe='')}"
    return f"instance@base64/{urlsafe_b64encode(instance.encode()).decode()}"


def _gateway(url: str) -> Poster:
    found = Poster(url)
    if not found.user:
        return found
    secret = b64encode(f"{found.user}:{found.password}".encode()).decode()
    return Poster(url, {"Authorization": f"Basic {secret}"})


async def _push(text: Callable[[], Awaitable[bytes]], gateway: Poster, group: str, every_s: int) -> None:
    is_out = False
    while True:
        try:
            await gateway.post(group, await text(), kind=CONTENT_TYPE, method="PUT")
            is_out = False
        except ExportError as error:
            if not is_out:
                _log.warning("Metrics cannot be pushed: %s. It is tried again every %d s.", error, every_s)
            is_out = True
        except Exception as error:  # noqa: BLE001 - such as a store that is down: the next push may work
            _log.info("Metrics are pushed later: %s", error)
        await asyncio.sleep(every_s)
