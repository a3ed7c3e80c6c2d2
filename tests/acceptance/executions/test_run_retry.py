"""`noetl retry` and `noetl delete`: of executions that ended."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.acceptance.admin.test_prune import blobs
from tests.acceptance.run import noetl
from tests.acceptance.running import Folder, summary
from tests.client.working import working
from tests.server.serving import FAILS, WAITS, listening

PLAY = """
- step: load
  tool:
    kind: python
    code: |
      open("effects.txt", "a").write("load\\n")
      result = 1
  next: use
- step: use
  tool:
    kind: python
    code: |
      import os
      result = open("ready.txt").read()
"""


def test_a_retry_continues_from_the_failed_step(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY))
    assert (ran.code, ran.status) == (1, "failed")
    again = summary(folder.call("retry", ran.id, "--json"))
    assert (again.code, again.id != ran.id) == (1, True)
    (folder.path / "ready.txt").write_text("yes")
    done = summary(folder.call("retry", ran.id, "--json"))
    assert (done.code, done.result) == (0, "yes")
    assert folder.lines("effects.txt") == ["load"]
    assert summary(folder.call("retry", ran.id, "--step", "load", "--json")).code == 0
    assert folder.lines("effects.txt") == ["load", "load"]


def test_a_retry_takes_the_latest_version_if_asked(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY))
    (folder.path / "ready.txt").write_text("yes")
    corrected = folder.run(folder.playbook(PLAY.replace("read()", "read() + '!'")))
    assert summary(folder.call("retry", ran.id, "--latest", "--json")).result == corrected.result == "yes!"


def test_what_did_not_fail_is_not_retried(folder: Folder) -> None:
    ran = folder.run(folder.playbook("- step: a\n  tool: { kind: noop }"))
    refused = folder.call("retry", ran.id)
    assert (refused.code, f"No step of execution {ran.id} has failed" in refused.err) == (1, True)
    assert "noetl fork" in refused.err
    unknown = folder.call("retry", "123")
    assert (unknown.code, "No execution 123" in unknown.err) == (2, True)


def test_an_ended_execution_is_deleted_with_its_results(folder: Folder) -> None:
    spec = "spec: { result: { inline_max_bytes: 5 } }"
    ran = folder.run(folder.playbook(f"- step: a\n  tool: {{ kind: noop, result: '0123456789', {spec} }}"))
    assert blobs(folder) == 1
    deleted = folder.call("delete", ran.id, "--json")
    assert (deleted.code, json.loads(deleted.out)) == (0, {"execution_id": ran.id, "status": "deleted"})
    assert folder.call("runs").out.strip() == "no executions"
    assert blobs(folder) == 0
    assert folder.call("delete", ran.id).code == 2


def test_an_open_execution_is_not_deleted(folder: Folder) -> None:
    ran = folder.run(folder.playbook("- step: a\n  tool: { kind: wait, signal: go }"))
    refused = folder.call("delete", ran.id)
    assert (refused.code, f"noetl cancel {ran.id}" in refused.err) == (1, True)
    assert folder.ids() == [ran.id]


@pytest.mark.asyncio
async def test_both_work_on_a_server(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, working(tmp_path, served.url):
        failed = await served.start(FAILS)
        await served.until(failed, "failed")
        waiting = await served.start(WAITS)
        await served.until(waiting, "waiting")

        async def call(*given: str) -> tuple[int, str, str]:
            ran = await asyncio.to_thread(noetl, *given, "--server", served.url, cwd=tmp_path)
            return ran.code, ran.out, ran.err

        code, out, _ = await call("retry", failed, "--json")
        made = json.loads(out)["execution_id"]
        assert (code, made != failed) == (0, True)
        await served.until(made, "failed")
        code, _, err = await call("delete", waiting)
        assert (code, "has not ended" in err) == (1, True)
        assert (await call("delete", failed))[0] == 0
        assert (await call("status", failed))[0] == 2
