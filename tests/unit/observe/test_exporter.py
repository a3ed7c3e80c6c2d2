"""Metrics on a port of their own."""

from __future__ import annotations

import logging
import socket

import httpx
import pytest

from noetl.observe.exporter import exporting
from noetl.observe.task_counts import TaskCounts
from noetl.settings import MetricsSettings

pytestmark = pytest.mark.asyncio


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])


async def test_a_scraper_reads_what_was_counted_at_its_path_alone() -> None:
    counts, port = TaskCounts(), free_port()
    counts.begin("http", "")
    async with exporting(counts.text, MetricsSettings(port=port, path="/own")), httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}/own")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'noetl_worker_tasks_started_total{kind="http",pool="default"} 1.0' in answer.text
        counts.begin("http", "")
        assert 'pool="default"} 2.0' in (await client.get(f"http://127.0.0.1:{port}/own")).text
        assert (await client.get(f"http://127.0.0.1:{port}/")).status_code == 404
        assert (await client.post(f"http://127.0.0.1:{port}/own")).status_code == 405
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("place", [MetricsSettings(), MetricsSettings(enabled=False, port=1)])
async def test_no_port_is_opened_unasked(place: MetricsSettings) -> None:
    async with exporting(TaskCounts().text, place):
        pass


async def test_a_port_that_is_taken_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with exporting(TaskCounts().text, MetricsSettings(port=port)):
            pass
    (told,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert f"No metrics at 127.0.0.1:{port}" in told.getMessage()
    assert "NOETL_METRICS_PORT" in told.getMessage()
