"""PostgreSQL restarts under HTTP load: no acknowledged request is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from signal import SIGINT, SIGQUIT, Signals

import httpx
import pytest

from tests.server.serving import TWO, Served, listening
from tests.services import postgres_server

pytestmark = pytest.mark.asyncio
CLIENTS = 3


async def surely(served: Served, method: str, path: str, told: Counter[int], **more: object) -> httpx.Response:
    """Send a request until it succeeds; a refusal must have Retry-After."""
    while True:
        answer = await served.http.request(method, path, **more)  # type: ignore[arg-type]
        told[answer.status_code] += 1
        if answer.is_success:
            return answer
        assert answer.status_code == 503, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert int(answer.headers["retry-after"]) >= 1
        await asyncio.sleep(0.1)


async def test_a_restarted_database_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    loop, told, over = asyncio.get_running_loop(), Counter[int](), asyncio.Event()
    with postgres_server() as database:
        async with (
            listening(tmp_path, database=database.address(), lease_ms=3_000) as served,
            served.embedded.run_worker(""),
        ):
            path = await served.register(TWO)

            async def client(number: int) -> list[str]:
                started: list[str] = []
                while not over.is_set():
                    key = {"Idempotency-Key": f"{number}-{len(started)}"}
                    answer = await surely(served, "POST", "/api/execute", told, json={"path": path}, headers=key)
                    started.append(answer.json()["execution_id"])
                    await surely(served, "GET", f"/api/executions/{started[-1]}", told)
                    await asyncio.sleep(0.05)
                return started

            async def restarts(*ways: Signals) -> None:
                for how in ways:
                    await asyncio.sleep(0.1)
                    await loop.run_in_executor(None, database.stop, how)
                    refused = await served.http.get("/ready")
                    assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
                    await loop.run_in_executor(None, database.start)
                await surely(served, "GET", "/ready", told)
                over.set()

            lists, _ = await asyncio.gather(asyncio.gather(*map(client, range(CLIENTS))), restarts(SIGINT, SIGQUIT))
            ids = [name for found in lists for name in found]
            assert len(set(ids)) == len(ids) > CLIENTS
            for name in ids:
                row = await served.until(name, "completed")
                events = (await served.json("GET", f"/api/executions/{name}/events"))["events"]
                assert [event["seq"] for event in events] == list(range(1, row["last_seq"] + 1))
                ends = Counter(event["step"] for event in events if event["event_type"] == "step.done")
                assert ends == {"one": 1, "two": 1}
            listed = await served.json("GET", "/api/executions?limit=500")
            assert sorted(one["execution_id"] for one in listed["executions"]) == sorted(ids)
