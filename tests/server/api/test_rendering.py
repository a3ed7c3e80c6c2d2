"""Templates of a request: rendered beside the event loop, with one budget."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic

import pytest

from noetl.settings import ServerSettings
from tests.server.serving import ONE, in_process

pytestmark = pytest.mark.asyncio
BUSY = "{% for a in range(400) %}{% for b in range(400) %}{% set c = a * b %}{% endfor %}{% endfor %}"


async def test_the_templates_of_a_request_share_one_budget(tmp_path: Path) -> None:
    async with in_process(tmp_path, ServerSettings(check_s=600)) as served:
        started = await served.start(ONE)
        body = {"execution_id": started, "template": BUSY}
        assert (await served.json("POST", "/context/render", body))["result"] == ""
        told = await served.json("POST", "/context/render", {**body, "template": [BUSY] * 100}, 422)
        assert "operations" in told["detail"]


async def test_a_late_rendering_is_refused_and_the_next_one_answered(tmp_path: Path) -> None:
    async with in_process(tmp_path, ServerSettings(check_s=0.05)) as served:
        started = await served.start(ONE)
        told = await served.json("POST", "/context/render", {"execution_id": started, "template": [BUSY] * 100}, 422)
        assert "takes more than 0.05 s of processor time" in told["detail"]
        assert "NOETL_CHECK_SECONDS" in told["fix"]
    async with in_process(tmp_path, ServerSettings(check_s=600)) as served:
        body = {"execution_id": started, "template": {"n": "{{ 6 * 7 }}"}}
        assert (await served.json("POST", "/context/render", body))["result"] == {"n": 42}


async def test_the_event_loop_runs_while_templates_are_rendered(tmp_path: Path) -> None:
    async with in_process(tmp_path, ServerSettings(check_s=600)) as served:
        started = await served.start(ONE)
        body = {"execution_id": started, "template": [BUSY] * 4}
        await served.json("POST", "/context/render", {**body, "template": ""})  # a child is there now
        begun = monotonic()
        alone = asyncio.create_task(served.json("POST", "/context/render", body))
        turns = 0
        while not alone.done():
            await asyncio.sleep(0.001)
            turns += 1
        took_ms = (monotonic() - begun) * 1000
        assert turns > took_ms / 20, (turns, took_ms)
