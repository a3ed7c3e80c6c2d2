"""Retries with the real command and a real server: counts, delays, layers, log."""

from __future__ import annotations

import json
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import pytest

from tests.acceptance.running import Folder, summary
from tests.server.serving import Served, in_process, playbook
from tests.services import free_port
from tests.tools.web import Web

FAILS = """
- step: a
  spec: SPEC
  tool: { kind: python, code: "raise RetryableError('no')", spec: TASK }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / ".noetl").mkdir()
    return Folder(tmp_path)


def failures(folder: Folder) -> list[dict[str, Any]]:
    """Return the failed attempts; a single one is recorded as the task's failure."""
    return folder.events("last", "--type", "task.attempt.failed") or folder.events("last", "--type", "task.failed")


def limited(attempts: int) -> dict[str, Any]:
    return {"retries": {"plugin": {"max_attempts": attempts, "base_ms": 1}}}


def test_max_attempts_are_configurable_at_every_layer(folder: Folder) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text("retries: {plugin: {max_attempts: 2, base_ms: 1}}\n")
    plain = FAILS.replace("SPEC", "{}").replace("TASK", "{}")
    step = FAILS.replace("SPEC", json.dumps(limited(5))).replace("TASK", "{}")
    task = FAILS.replace("SPEC", json.dumps(limited(5))).replace("TASK", json.dumps(limited(6)))
    executor = {"spec": limited(4)}
    layers: list[tuple[str, dict[str, Any], dict[str, str], int]] = [
        (plain, {}, {}, 2),
        (plain, {}, {"NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS": "3"}, 3),
        (plain, {"executor": executor}, {"NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS": "3"}, 4),
        (step, {"executor": executor}, {}, 5),
        (task, {"executor": executor}, {}, 6),
    ]
    for text, sections, environment, expected in layers:
        ran = summary(folder.call("run", folder.playbook(text, **sections), "--json", **environment))
        assert (ran.code, len(failures(folder))) == (1, expected)


def test_sinks_are_retried_and_their_failures_reported(folder: Folder) -> None:
    away = f"postgresql://nobody@127.0.0.1:{free_port()}/nowhere?connect_timeout=2"
    write = "{ kind: postgres, auth: away, table: t, mode: upsert, key: id, values: { id: 1 } }"
    retries = {"plugin": {"max_attempts": 2, "base_ms": 1}, "sink": {"max_attempts": 4}}
    for more, code, after in (({}, 1, 0), ({"on_sink_fail": "async_ignore"}, 0, 1)):
        steps = f"- {{ step: a, tool: {write}, next: b }}\n- {{ step: b, tool: {{ kind: noop }} }}\n"
        file = folder.playbook(steps, executor={"spec": {"retries": retries, **more}})
        ran = summary(folder.call("run", file, "--json", NOETL_CREDENTIAL_AWAY=away))
        assert (ran.code, ran.data["steps"].get("b", {}).get("done", 0)) == (code, after)
        told = failures(folder)
        assert len(told) == 4
        [last] = folder.events("last", "--type", "task.failed")
        error = last["payload"]["error"]
        assert (error["class"], error["kind"], error["code"]) == ("SinkError", "db_connection", "PG_08001")
        assert error["retryable"] is True


def test_backoff_is_exponential_with_jitter(folder: Folder) -> None:
    spec = {"retries": {"plugin": {"max_attempts": 5, "base_ms": 100, "max_ms": 300}}}
    text = FAILS.replace("SPEC", json.dumps(spec)).replace("TASK", "{}")
    folder.run(folder.playbook(text))
    failed = [event["timestamp"] for event in folder.events("last", "--type", "task.attempt.failed")]
    begun = [event["timestamp"] for event in folder.events("last", "--type", "task.attempt.started")]
    waits = [start - end for start, end in zip(begun, failed[:4], strict=True)]
    least = [min(100 * 2**retry, 300) // 2 for retry in range(4)]
    assert all(wait >= bound for wait, bound in zip(waits, least, strict=True)), waits


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured(folder: Folder, web: Web, form: str) -> None:
    web.retry_after = "2" if form == "seconds" else lambda: formatdate(time() + 3, usegmt=True)
    spec = {"retries": {"plugin": {"max_attempts": 2, "base_ms": 1}}}
    file = folder.playbook(
        f"- {{ step: a, tool: {{ kind: http, method: POST, url: '{web.url}/status/429' }} }}", executor={"spec": spec}
    )
    assert folder.run(file).code == 1
    [first, _] = folder.events("last", "--type", "task.attempt.failed")
    [second] = folder.events("last", "--type", "task.attempt.started")
    assert second["timestamp"] - first["timestamp"] >= 1_000  # a date has whole seconds
    assert len({asked.headers["idempotency-key"] for asked in web.asked}) == 1


@pytest.mark.asyncio
async def test_a_long_delay_is_parked_on_the_server_and_holds_no_slot(tmp_path: Path) -> None:
    patient = playbook(
        "  - step: a\n    tool: {kind: python, code: \"raise RetryableError('later', retry_after=3600)\"}\n", "patient"
    )
    quick = playbook("  - step: a\n    tool: {kind: noop, result: 1}\n", "quick")
    async with in_process(tmp_path, capacity=1) as served, served.embedded.run_worker(""):
        waits = await served.start(patient)
        suspended = await _event(served, waits, "step.suspended")
        assert suspended["payload"]["cause"] == "delay"
        assert suspended["payload"]["until"] - suspended["timestamp"] >= 3_590_000
        assert (await served.until(await served.start(quick), "completed", "failed"))["status"] == "completed"
        assert (await served.json("GET", f"/api/executions/{waits}"))["status"] == "running"


async def _event(served: Served, execution_id: str, name: str) -> dict[str, Any]:
    import asyncio

    async with asyncio.timeout(30):
        while True:
            found = await served.json("GET", f"/api/executions/{execution_id}/events?type={name}")
            if found["events"]:
                return dict(found["events"][0])
            await asyncio.sleep(0.02)
