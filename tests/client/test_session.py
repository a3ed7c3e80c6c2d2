"""A remote worker over real HTTP: its session, and failures of either side."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import serve

from noetl.client.http import Http, Servers
from noetl.client.session import Session
from noetl.model.errors import Denied, InvalidInput
from noetl.settings import ServerSettings
from noetl.wire.session import Claim, Hello, Leases
from tests.client.working import network, working
from tests.server.serving import ONE, TWO, Served, happens, listening, playbook

pytestmark = pytest.mark.asyncio
SLEEPS = playbook("  - step: one\n    tool: {kind: shell, cmds: ['sleep 60']}\n", "sleeps")
CHAIN = playbook(
    "".join(
        f"  - step: s{number}\n    tool: {{kind: noop, result: {number}}}\n"
        + (f"    next: s{number + 1}\n" if number < 29 else "")
        for number in range(30)
    ),
    "chain",
)
ITEMS = playbook(
    "  - step: each\n    loop: {in: '{{ range(200) | list }}', iterator: n, spec: {mode: parallel, max_in_flight: 8}}\n"
    "    tool: {kind: noop, result: '{{ iter.n }}'}\n",
    "items",
)


async def types(served: Served, execution_id: str) -> Counter[str]:
    events = (await served.json("GET", f"/api/executions/{execution_id}/events?limit=1000"))["events"]
    return Counter(event["event_type"] for event in events)


async def test_steps_and_items_are_done_over_a_session(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url) as (_, session):
        started = await served.start(TWO)
        assert (await served.until(started, "completed", "failed"))["result"] == 2
        started = await served.start(ITEMS)
        assert (await served.until(started, "completed", "failed"))["status"] == "completed"
        assert session.is_open
        assert [worker["worker_id"] for worker in (await served.json("GET", "/api/workers"))["workers"]] == ["w-1"]


async def test_the_settings_for_executions_are_those_of_the_server(tmp_path: Path) -> None:
    layer = {"timeouts": {"tool_default_ms": 50}, "on_step_fail": "continue"}
    async with listening(tmp_path, layer=layer) as served, working(tmp_path, served.url) as (_, session):
        started = await served.start(SLEEPS)
        ended = await served.until(started, "completed", "failed")
        assert (ended["status"], ended["error"]["kind"]) == ("failed", "timeout")
        assert session.layer == layer


async def test_without_websockets_the_routes_do(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, network(served.url) as between:
        between.upgrades = False
        async with working(tmp_path, between.url):
            started = await served.start(CHAIN)
            assert (await served.until(started, "completed", "failed"))["result"] == 29
            started = await served.start(ITEMS)
            assert (await served.until(started, "completed", "failed"))["status"] == "completed"
            assert (await types(served, started))["report.late"] == 0


@pytest.mark.parametrize("upgrades", [True, False])
async def test_nothing_is_lost_or_doubled_when_the_network_is_cut_again_and_again(
    tmp_path: Path, upgrades: bool
) -> None:
    async with listening(tmp_path) as served, network(served.url) as between:
        between.upgrades = upgrades
        async with working(tmp_path, between.url):
            started = [await served.start(content) for content in (CHAIN, ITEMS, CHAIN)]
            waiting = asyncio.gather(*(served.until(one, "completed", "failed") for one in started))
            for size in (0, 100, 700, 3_000, 1_500, 8_000):
                between.after_bytes = size  # often in the middle of an answer
                await happens(lambda: between.after_bytes is None or waiting.done(), "the cut")
            assert [one["status"] for one in await waiting] == ["completed"] * 3
            assert between.cuts > 2
        for one in started:
            found = await types(served, one)
            assert found["step.done"] == (1 if one == started[1] else 30)
            assert found["loop.iteration.done"] in (0, 200)


async def test_a_cut_is_survived_and_what_runs_goes_on(tmp_path: Path) -> None:
    slow = playbook("  - step: one\n    tool: {kind: shell, cmds: ['sleep 1.2 && echo done']}\n", "slow")
    async with listening(tmp_path) as served, network(served.url) as between:
        async with working(tmp_path, between.url) as (worker, session):
            started = await served.start(slow)
            await happens(lambda: worker.busy == 1, "the claim")
            before = between.opened
            between.cut()
            await happens(lambda: between.opened > before and session.is_open, "the new session")
            assert (await served.until(started, "completed", "failed"))["status"] == "completed"
        found = await types(served, started)
        assert found["task.done"] == 1
        assert found["step.started"] == 1


async def test_connections_that_are_reset_before_they_say_anything_are_tried_again(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, network(served.url) as between:
        with between.away():
            async with working(tmp_path, between.url) as (_, session):
                await happens(lambda: between.refused >= 6 or session._ended, "the tries")
                assert not session._ended
                between.is_cut = False
                started = await served.start(ONE)
                assert (await served.until(started, "completed", "failed"))["result"] == 1


async def test_what_is_no_server_is_told_to_the_worker(tmp_path: Path) -> None:
    async def strange(socket: Any) -> None:
        await socket.recv()
        await socket.send('{"type": "greetings"}')
        await socket.wait_closed()

    async with serve(strange, "127.0.0.1", 0) as stranger:
        url = f"http://127.0.0.1:{stranger.sockets[0].getsockname()[1]}"
        with pytest.raises(InvalidInput, match="not a server of this version"):
            async with working(tmp_path, url) as (_, session):
                await _ended(session)


async def test_a_worker_that_ends_before_the_welcome_leaves_no_connection(tmp_path: Path) -> None:
    greeted, ended = asyncio.Event(), asyncio.Event()

    async def silent(socket: Any) -> None:
        await socket.recv()
        greeted.set()
        await socket.wait_closed()
        ended.set()

    async with serve(silent, "127.0.0.1", 0) as server:
        async with working(tmp_path, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"):
            await greeted.wait()
        async with asyncio.timeout(10):
            await ended.wait()


async def test_a_cancelled_execution_ends_its_tool_at_once(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url) as (worker, _):
        started = await served.start(SLEEPS)
        await happens(lambda: worker.busy == 1, "the claim")
        await served.json("POST", f"/api/executions/{started}/cancel", {"reason": "enough"})
        await happens(lambda: worker.busy == 0, "the end of the tool")
        assert (await served.until(started, "cancelled"))["status"] == "cancelled"


async def test_a_drained_worker_finishes_and_takes_nothing_more(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url) as (worker, session):
        await happens(lambda: session.is_open, "the session")
        await served.json("POST", "/api/workers/w-1/drain")
        await happens(worker._draining.is_set, "the drain")
        started = await served.start(ONE)
        async with working(tmp_path, served.url, name="w-2"):
            assert (await served.until(started, "completed", "failed"))["status"] == "completed"
        assert worker.busy == 0


async def test_leases_that_nobody_waits_for_any_more_go_back(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        http = Http(Servers([served.url]))
        session = Session(http, lambda: Hello("w-1"))
        running = asyncio.create_task(session.run())
        try:
            await happens(lambda: session.is_open, "the session")
            claim = asyncio.create_task(session.ask(Claim("c-1", 1, 20.0)))
            await happens(lambda: bool(served.services.registry.connection("w-1").claims), "the claim")
            claim.cancel()
            await served.start(ONE)
            answer = await asyncio.wait_for(session.ask(Claim("c-2", 1, 20.0)), 10)
            assert isinstance(answer, Leases)
            assert [lease.work.step for lease in answer.leases] == ["one"]
            assert [lease.attempt for lease in answer.leases] == [1]
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await http.close()


async def test_the_next_server_is_asked_where_one_is_away(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, "http://127.0.0.1:9", served.url):
        started = await served.start(ONE)
        assert (await served.until(started, "completed", "failed"))["result"] == 1


async def test_requests_find_the_server_that_has_the_session(tmp_path: Path) -> None:
    large = playbook("  - step: one\n    tool: {kind: python, code: 'result = \"x\" * 2_000_000'}\n", "large")
    async with (
        listening(tmp_path) as one,
        listening(tmp_path) as two,
        working(tmp_path, one.url, two.url) as (_, session),
    ):
        await happens(lambda: session.is_open, "the session")
        session._http.servers.turn(one.url)
        started = await one.start(large)
        assert (await one.until(started, "completed", "failed"))["status"] == "completed"
        assert two.services.registry.workers == 0


async def test_a_token_that_is_not_good_ends_the_worker_with_words(tmp_path: Path) -> None:
    async with listening(tmp_path) as first:
        token: Any = await first.json("POST", "/api/tokens", {"role": "viewer"})
        await first.json("POST", "/api/tokens", {"role": "admin"})
    async with listening(tmp_path, ServerSettings(auth="token")) as served:
        for given, said in (
            ("noetl_no", "not known"),
            (token["secret"], "requires worker"),
            (None, "requires a token"),
        ):
            with pytest.raises(Denied, match=said):
                async with working(tmp_path, served.url, token=given) as (_, session):
                    await asyncio.sleep(10) if session.is_open else await _ended(session)


async def _ended(session: Session) -> None:
    await happens(lambda: session._ended, "the refusal")


async def test_what_is_no_address_is_refused() -> None:
    for bad in ("localhost:8082", "ftp://here", "http://", ""):
        with pytest.raises(InvalidInput, match="not the address"):
            Servers([bad])
    with pytest.raises(InvalidInput, match="No server is configured"):
        Servers([])
