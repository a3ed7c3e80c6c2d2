"""Followers over HTTP: no event missed or repeated, after a cut, on two servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.server.serving import ONE, TWO, WAITS, Served, listening

pytestmark = pytest.mark.asyncio


async def stream(served: Served, path: str, last: str | None = None) -> AsyncGenerator[tuple[str, str, Any], None]:
    """Yield (id, event, data) of a stream."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with served.http.stream("GET", path, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream"), await answer.aread()
        found: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                found[name] = value
            elif "data" in found:
                yield found.get("id", ""), found["event"], msgspec.json.decode(found["data"])
                found = {}


async def test_one_execution_is_followed_to_its_end(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        started = await served.start(TWO)
        path = f"/api/executions/{started}/events/stream"
        seen: list[int] = []
        async with served.embedded.run_worker(""):
            async with asyncio.timeout(30):
                async for name, event, data in stream(served, path):
                    if event != "end":
                        assert data["seq"] == int(name)
                        seen.append(int(name))
        row = await served.json("GET", f"/api/executions/{started}")
        assert seen == list(range(1, row["last_seq"] + 1))
        again = [int(name) async for name, event, _ in stream(served, path, "5") if event != "end"]
        assert again == seen[5:]
        kinds = {event async for _, event, _ in stream(served, path + "?type=step.*")}
        assert {"step.done", "end"} <= kinds
        assert not any(kind.startswith("task.") for kind in kinds)
        bad = await served.http.get(path, headers={"Last-Event-ID": "x"})
        assert bad.status_code == 400


async def test_a_stream_resumes_after_a_position_in_its_address(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        feed = stream(served, "/api/executions/stream")
        position, event, _ = await anext(feed)
        await feed.aclose()
        started = await served.start(ONE)
        again = stream(served, f"/api/executions/stream?after={quote(position)}")
        assert (await anext(again))[:2] == (position, event)
        assert (await anext(again))[2]["execution_id"] == started
        await again.aclose()
        assert (await served.http.get("/api/executions/stream?after=x")).status_code == 400


async def test_all_executions_are_followed_across_two_servers_and_cuts(tmp_path: Path) -> None:
    async with listening(tmp_path) as one, listening(tmp_path) as two:
        feed = stream(one, "/api/executions/stream?type=playbook.*")
        position, event, _ = await anext(feed)
        assert event == "begin"
        ids = [await served.start(ONE) for _ in range(6) for served in (one, two)]
        seen: list[tuple[str, int]] = []
        async with one.embedded.run_worker(""), asyncio.timeout(30):
            while sum(1 for name in ids if (name, "finished") in _marks(seen)) < 3:
                position, event, data = await anext(feed)
                seen.append((data["execution_id"], data["seq"]))
                _note(seen, data, event)
            await feed.aclose()
            async for _name, event, data in stream(two, "/api/executions/stream?type=playbook.*", position):
                if event == "begin":
                    continue
                assert (data["execution_id"], data["seq"]) not in seen, "an event came twice"
                seen.append((data["execution_id"], data["seq"]))
                _note(seen, data, event)
                if all((name, "finished") in _marks(seen) for name in ids):
                    break
        for name in ids:
            every = (await one.json("GET", f"/api/executions/{name}/events?type=playbook.*"))["events"]
            wanted = [event["seq"] for event in every]
            got = [seq for found, seq in seen if found == name]
            assert got == wanted[: len(got)]
            assert _ENDS[name] in got


_ENDS: dict[str, int] = {}


def _note(_seen: list[tuple[str, int]], data: dict[str, Any], event: str) -> None:
    if event == "playbook.finished":
        _ENDS[data["execution_id"]] = data["seq"]


def _marks(seen: list[tuple[str, int]]) -> set[tuple[str, str]]:
    return {(name, "finished") for name, seq in seen if _ENDS.get(name) == seq}


async def test_a_stream_ends_with_the_server_and_is_let_go_by_its_reader(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        started = await served.start(WAITS)
        feed = stream(served, f"/api/executions/{started}/events/stream")
        await anext(feed)
        await feed.aclose()
        other = stream(served, f"/api/executions/{started}/events/stream")
        await anext(other)
        served.services.stopping.set()
        async with asyncio.timeout(10):
            assert [event async for _, event, _ in other][-1] != "end"
