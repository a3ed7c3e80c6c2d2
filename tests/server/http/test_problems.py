"""Errors over HTTP: one shape, the right status, and a store that is away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetl.model import errors
from noetl.model.errors import NoetlError, StoreUnavailable
from noetl.server.problems import STATUSES, Refusal, problem_of
from tests.server.serving import ONE, in_process

pytestmark = pytest.mark.asyncio


async def test_every_error_of_the_tree_has_a_status() -> None:
    tree = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, NoetlError)]
    assert set(tree) == set(STATUSES)
    for kind in tree:
        problem, _ = problem_of(kind("why"))
        assert (problem.status, problem.detail) == (STATUSES[kind][0], "why")


async def test_a_mistake_of_ours_tells_nothing_of_the_inside(caplog: pytest.LogCaptureFixture) -> None:
    problem, _ = problem_of(ZeroDivisionError("secret inside"))
    assert problem.status == 500
    assert "secret" not in problem.detail
    assert "secret inside" in caplog.text


async def test_a_store_that_is_away_is_503_with_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with in_process(tmp_path) as served:

        async def away(*_given: Any, **_more: Any) -> Any:
            raise StoreUnavailable("the disk is gone")

        for name in ("executions", "probe", "content_hash"):
            monkeypatch.setattr(served.services.store, name, away)
        for method, path, body in (
            ("GET", "/api/executions", None),
            ("GET", "/ready", None),
            ("POST", "/api/execute", {"path": "x"}),
        ):
            answer = await served.http.request(method, path, json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2"), answer.text
        assert (await served.http.get("/health")).status_code == 200


async def test_routes_and_methods_that_are_not_there(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for method, path, status in (
            ("GET", "/nope", 404),
            ("POST", "/health", 405),
            ("TRACE", "/api/executions", 405),
        ):
            answer = await served.http.request(method, path)
            assert answer.status_code == status
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["instance"] == path
        form = await served.http.post("/api/execute", data={"path": "x"})
        assert form.status_code == 415


async def test_a_refusal_says_what_where_why_and_what_to_do() -> None:
    problem = Refusal(422, "word", "why", where="$.x", fix="do").problem
    assert (problem.type, problem.title) == ("about:blank#word", "Unprocessable Entity")
    assert (problem.detail, problem.where, problem.fix) == ("why", "$.x", "do")


async def test_a_server_of_which_a_part_has_ended_is_not_ready_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("a mistake of ours")

    async with in_process(tmp_path) as served:
        path = await served.register(ONE)
        monkeypatch.setattr(served.services.control.sequencer, "_turn", broken)
        assert (await served.http.get("/ready")).status_code == 200
        assert (await served.http.post("/api/execute", json={"path": path})).status_code == 503
        answer = await served.http.get("/ready")
        assert answer.status_code == 503
        assert "Restart the server" in answer.json()["detail"]
        assert (await served.http.get("/health")).status_code == 200
    [told] = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert "Sequencer.run has ended" in told.getMessage()
    assert "a mistake of ours" in str(told.exc_info)
