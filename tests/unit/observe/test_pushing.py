"""Metrics pushed to a gateway, over real HTTP."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from noetl.model.errors import InvalidInput
from noetl.observe.pushing import pushing
from noetl.observe.task_counts import TaskCounts
from noetl.settings import METRICS_PUSH_SECONDS, METRICS_PUSH_URL, MetricsSettings, settings
from tests.unit.observe.test_exporter import free_port

pytestmark = pytest.mark.asyncio
GROUPS = {
    "host:1": "/metrics/job/noetl/instance/host:1",
    "a/b": "/metrics/job/noetl/instance@base64/YS9i",
}


class Gateway:
    """Groups of metrics, and what was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.groups: dict[str, str] = {}
        self.users: set[str] = set()
        self.pushed = asyncio.Event()

    async def take(self, request: web.Request) -> web.Response:
        self.users.add(b64decode(request.headers.get("Authorization", "Basic ").partition(" ")[2]).decode())
        if request.method == "DELETE":
            self.groups.pop(request.raw_path, None)
            return web.Response(status=202)
        assert request.method == "PUT"
        self.groups[request.raw_path] = await request.text()
        self.pushed.set()
        return web.Response()


@asynccontextmanager
async def gateway(port: int = 0) -> AsyncIterator[Gateway]:
    found, app = Gateway(), web.Application()
    app.router.add_route("*", "/{path:.*}", found.take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    found.url = f"127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield found
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("instance", GROUPS)
async def test_metrics_are_pushed_while_it_runs_and_deleted_at_the_end(instance: str) -> None:
    counts = TaskCounts()
    counts.begin("http", "")
    async with gateway() as found:
        place = MetricsSettings(push_url=f"http://me:s3cret@{found.url}", push_s=1)
        async with pushing(counts.text, place, instance):
            await asyncio.wait_for(found.pushed.wait(), 30)
            assert 'noetl_worker_tasks_started_total{kind="http",pool="default"} 1.0' in found.groups[GROUPS[instance]]
            counts.begin("http", "")
            found.pushed.clear()
            await asyncio.wait_for(found.pushed.wait(), 30)
            assert 'pool="default"} 2.0' in found.groups[GROUPS[instance]]
        assert found.groups == {}
        assert found.users == {"me:s3cret"}


async def test_a_gateway_that_is_gone_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    with caplog.at_level(logging.WARNING):
        async with pushing(
            TaskCounts().text, MetricsSettings(push_url=f"http://a:canary@127.0.0.1:{port}", push_s=1), "x"
        ):
            while not caplog.records:
                await asyncio.sleep(0.01)
            async with gateway(port) as found:
                await asyncio.wait_for(found.pushed.wait(), 30)
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    assert "canary" not in caplog.text


@pytest.mark.parametrize("place", [MetricsSettings(), MetricsSettings(enabled=False, push_url="http://127.0.0.1:1")])
async def test_nothing_is_pushed_unasked(place: MetricsSettings, caplog: pytest.LogCaptureFixture) -> None:
    async with pushing(TaskCounts().text, place, "x"):
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "noetl-metrics-push"]


async def test_settings_name_the_gateway() -> None:
    found = settings({METRICS_PUSH_URL: "http://h:9091", METRICS_PUSH_SECONDS: "5"}, Path()).metrics
    assert (found.push_url, found.push_s) == ("http://h:9091", 5)
    with pytest.raises(InvalidInput, match=METRICS_PUSH_URL):
        settings({METRICS_PUSH_URL: "h:9091"}, Path())
