"""An undecidable message: over the API, by command line, in a local store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from noetl.model.messages import Signal
from tests.acceptance.run import noetl
from tests.conformance.test_poison import Mistake
from tests.server.api.test_dlq import team
from tests.server.serving import WAITS, in_process

pytestmark = pytest.mark.asyncio


async def test_it_is_found_and_replayed_at_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = Mistake(monkeypatch)
    async with team(tmp_path) as (served, client):
        execution = await served.start(WAITS)
        await served.until(execution, "waiting")
        mistake.meets = lambda message: isinstance(message, Signal)
        body = {"name": "go", "data": {"token": "hunter22"}}
        problem = await served.json("POST", f"/api/executions/{execution}/signal", body, status=500)
        assert problem["type"] == "about:blank#undecided"
        (row,) = (await client.letters()).letters
        assert row.message_id in problem["detail"]
        letter = await client.letter(row.message_id)
        assert (letter.reason, letter.payload["data"]) == ("poison_message", {"token": "(masked secret)"})
        assert "ZeroDivisionError" in letter.last_stack
        (standing,) = [one for one in (await client.explain(execution)).standing if one.what == "message"]
        assert (letter.message_id in standing.moved_by, standing.refs.letter) == (True, letter.message_id)
        metrics = (await served.http.get("/metrics")).text
        assert 'noetl_dlq_total{kind="",sink=""} 1.0' in metrics
        refused = await served.json("POST", f"/api/dlq/{letter.message_id}/replay", {"patch": {"spec.url": 1}}, 400)
        assert "nothing to patch" in refused["detail"]
        for fixed, code, says in ((False, 1, "1 failed again"), (True, 0, "1 repaired")):
            mistake.meets = lambda message, fixed=fixed: isinstance(message, Signal) and not fixed
            ran = await asyncio.to_thread(noetl, "dlq", "replay", letter.message_id, "--wait", "--server", served.url)
            assert (ran.code, says in ran.out) == (code, True), ran
        await served.until(execution, "completed")


async def test_it_is_found_and_replayed_in_a_local_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ".noetl"
    home.mkdir()
    mistake = Mistake(monkeypatch)
    async with in_process(home) as served:
        execution = await served.start(WAITS)
        mistake.meets = lambda message: isinstance(message, Signal)
        await served.json("POST", f"/api/executions/{execution}/signal", {"name": "go"}, status=500)
    rows = [json.loads(line) for line in noetl("dlq", "list", "--json", cwd=tmp_path).out.splitlines()]
    assert [row["reason"] for row in rows] == ["poison_message"]
    name = rows[0]["message_id"]
    assert "ZeroDivisionError" in noetl("dlq", "show", name, cwd=tmp_path).out
    assert name in noetl("explain", execution, cwd=tmp_path).out
    done = noetl("dlq", "replay", name, "--wait", cwd=tmp_path)  # a process that makes no such mistake
    assert (done.code, done.out) == (0, "1 dead letter replayed; 1 repaired, 0 failed again\n"), done.err
    assert noetl("admin", "rebuild", "--check", cwd=tmp_path).code == 0
