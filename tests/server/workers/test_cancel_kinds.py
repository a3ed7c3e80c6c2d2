"""Cancel many running tasks of every kind: no process and no query is left.

A few of each by default, 200 of each under `make chaos`, where they must be gone five seconds after the last answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.databases import server_address
from tests.server.cancelling import TOOLS, Busy, Held, until
from tests.server.serving import in_process
from tests.services import postgres_server

pytestmark = pytest.mark.asyncio
_FEW, _MANY = 4, 200
_START_S = 300.0  # queries that compute keep the others from starting
_PATIENCE_S = 60.0
_GONE_S = 5.0
_ENDING = {
    *("execution.cancelled", "step.failed", "token.absorbed", "workflow.finished", "playbook.finished"),
    *("playbook.processed", "report.late"),
}
Tell = Callable[[str, object], None]


async def cancelled(kind: str, count: int, folder: Path, database: str) -> float:
    """Cancel `count` running tasks; return the seconds until the last was gone."""
    held = Held()
    web = await asyncio.start_server(held.serve, "127.0.0.1", 0)
    held.url = f"http://127.0.0.1:{web.sockets[0].getsockname()[1]}"
    place = folder / "files"
    place.mkdir()
    capacity = 2 * count + 8  # one playbook never gets all slots of a worker
    async with web, in_process(folder, capacity=capacity) as served, served.embedded.run_worker(""):
        busy = Busy(served, kind, place, held, database)
        await busy.start(count)
        await until(busy.running, count, _START_S)
        answers = await asyncio.gather(
            *(served.json("POST", f"/api/executions/{one}/cancel", {"reason": "enough"}) for one in busy.started)
        )
        took = await until(busy.running, 0, _PATIENCE_S)
        assert {answer["status"] for answer in answers} == {"cancelled"}
        assert busy.orphans() == []
        store = served.services.store
        for one in busy.started:
            events = [event.event_type for event in await store.read(one)]
            after = set(events[events.index("execution.cancelled") :])
            assert after <= _ENDING, f"something followed: {after - _ENDING}"
        assert not await store.claim("somebody", [""], 10, 2**50, 2**50)
        assert not await store.due(2**50, 10)
    return took


@pytest.mark.parametrize("kind", TOOLS)
async def test_a_few_running_tasks_are_cancelled(kind: str, tmp_path: Path) -> None:
    await cancelled(kind, _FEW, tmp_path, server_address() if kind in ("postgres", "transfer") else "")


@pytest.mark.chaos
@pytest.mark.parametrize("kind", TOOLS)
async def test_many_running_tasks_are_cancelled(kind: str, tmp_path: Path, record_property: Tell) -> None:
    if kind in ("postgres", "transfer"):
        with postgres_server(max_connections=str(_MANY + 50), shared_buffers="64MB") as server:
            took = await cancelled(kind, _MANY, tmp_path, server.address())
    else:
        took = await cancelled(kind, _MANY, tmp_path, "")
    record_property("summary", f"{_MANY} tasks of kind {kind} were gone {took:.2f} s after the last answer")
    assert took <= _GONE_S
