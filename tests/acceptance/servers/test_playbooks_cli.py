"""`noetl playbooks`: list, show and delete the playbooks of a catalog."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.acceptance.run import noetl
from tests.acceptance.running import Folder
from tests.server.serving import ONE, listening


def test_the_catalog_of_a_local_store(folder: Folder) -> None:
    for number in (1, 2):
        folder.run(folder.playbook(f"- step: a\n  tool: {{ kind: noop, result: {number} }}"))
    folder.run(folder.playbook("- step: a\n  tool: { kind: noop }", name="other"))
    rows = [json.loads(line) for line in folder.call("playbooks", "list", "--json").out.splitlines()]
    assert [(row["path"], row["version"], row["versions"]) for row in rows] == [
        ("test/other", 1, 1),
        ("test/play", 2, 2),
    ]
    assert [line.split()[0] for line in folder.call("playbooks", "list", "--search", "oth").out.splitlines()] == [
        "test/other"
    ]
    assert "result: 2" in folder.call("playbooks", "show", "test/play").out
    assert "result: 1" in folder.call("playbooks", "show", "test/play", "--version", "1").out
    shown = json.loads(folder.call("playbooks", "show", "test/play", "--json").out)
    assert (shown["path"], shown["version"], "result: 2" in shown["content"]) == ("test/play", 2, True)
    removed = folder.call("playbooks", "delete", "test/play", "--version", "1", "--json")
    assert (removed.code, json.loads(removed.out)) == (0, {"path": "test/play", "version": 1, "removed": 1})
    assert folder.call("playbooks", "delete", "test/play").code == 0
    for given in (("show", "test/play"), ("delete", "test/play"), ("show", "test/other", "--version", "7")):
        missing = folder.call("playbooks", *given)
        assert (missing.code, "The catalog has no" in missing.err, "noetl playbooks list" in missing.err) == (
            2,
            True,
            True,
        ), missing.err


@pytest.mark.asyncio
async def test_the_catalog_of_a_server(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        await served.json("POST", "/api/catalog", {"content": ONE}, status=201)

        async def call(*given: str) -> str:
            ran = await asyncio.to_thread(noetl, "playbooks", *given, "--server", served.url, cwd=tmp_path)
            assert ran.code == 0, ran.err
            return ran.out

        assert json.loads(await call("list", "--json"))["path"] == "test/one"
        assert await call("show", "test/one") == ONE
        assert json.loads(await call("delete", "test/one", "--json"))["removed"] == 1
        assert await call("list") == "no playbooks\n"
