"""Hosts, origins, headers, and what happens when there is no room."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from noetl.server.screen import Screen
from noetl.settings import ALLOWED_HOSTS, ALLOWED_ORIGINS, ServerSettings
from tests.server.serving import Served, in_process, listening

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8082", "[::1]:8082", "LOCALHOST"])
async def test_a_server_on_loopback_answers_to_its_own_names(tmp_path: Path, host: str) -> None:
    async with in_process(tmp_path) as served:
        assert (await served.http.get("/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8082"])
async def test_a_name_that_was_made_to_point_here_is_refused(tmp_path: Path, host: str) -> None:
    async with in_process(tmp_path) as served:
        answer = await served.http.get("/api/executions", headers={"Host": host})
        assert answer.status_code == 421
        assert answer.json()["where"] == "header Host"
        assert ALLOWED_HOSTS in answer.json()["fix"]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1@evil.example"]
)
async def test_pages_of_other_origins_may_not_call(tmp_path: Path, origin: str) -> None:
    async with in_process(tmp_path) as served:
        answer = await served.http.post("/api/execute", json={}, headers={"Origin": origin})
        assert answer.status_code == 403
        assert ALLOWED_ORIGINS in answer.json()["fix"]
        assert "access-control-allow-origin" not in answer.headers


async def test_pages_of_this_server_and_of_allowed_origins_may(tmp_path: Path) -> None:
    async with in_process(tmp_path, ServerSettings(origins=("https://ui.example",))) as served:
        assert (await served.http.get("/api/executions", headers={"Origin": "http://127.0.0.1"})).status_code == 200
        answer = await served.http.get("/api/executions", headers={"Origin": "https://ui.example"})
        assert answer.headers["access-control-allow-origin"] == "https://ui.example"
        asked = await served.http.options("/api/execute", headers={"Origin": "https://ui.example"})
        assert asked.status_code == 204
        assert "Authorization" in asked.headers["access-control-allow-headers"]


async def test_a_session_from_another_origin_is_refused(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        url = served.url.replace("http", "ws") + "/api/worker/session"
        with pytest.raises(InvalidStatus):
            async with connect(url, origin="https://evil.example"):  # type: ignore[arg-type]
                pass


@pytest.mark.parametrize("path", ["/docs", "/health", "/api/executions", "/nowhere"])
async def test_every_answer_has_the_headers_that_protect_it(tmp_path: Path, path: str) -> None:
    async with in_process(tmp_path) as served:
        headers = (await served.http.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"


async def test_where_there_is_no_room_it_says_when_to_come_again(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        object.__setattr__(served.services, "bounds", dataclasses.replace(served.services.bounds, most_requests=0))
        answer = await served.http.get("/api/executions")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert (await served.http.get("/health")).status_code == 200


async def test_what_cannot_be_taken_in_now_is_told_to_come_again(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        object.__setattr__(served.services, "bounds", dataclasses.replace(served.services.bounds, most_unanswered=0))
        answer = await served.http.post("/api/execute", json={"path": "x"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert (await served.http.get("/api/executions")).status_code == 200


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve the plain page, as a checkout without a build of the web UI does."""
    monkeypatch.setattr(Screen.__init__, "__defaults__", (tmp_path / "nothing",))


@pytest.mark.usefixtures("unbuilt")
async def test_the_pages_are_plain_and_hold_nothing_of_others(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for path in ("/", "/docs"):
            text = (await served.http.get(path)).text
            assert "<script" not in text
            assert "http://" not in text
            assert "https://" not in text
        assert "/api/execute" in (await served.http.get("/docs")).text


@pytest.mark.usefixtures("unbuilt")
async def test_a_page_shows_what_runs_and_escapes_it(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await _named(served, "<b>bold")
        text = (await served.http.get("/")).text
        assert "&lt;b&gt;bold" in text
        assert "<b>bold" not in text


async def _named(served: Served, path: str) -> None:
    from tests.server.serving import ONE

    await served.start(ONE.replace("path: test/one", f"path: '{path}'"))
