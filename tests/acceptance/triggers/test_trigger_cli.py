"""`noetl trigger` on a server of its own: made, paused, resumed, deleted."""

from __future__ import annotations

import json

from tests.acceptance.running import Folder
from tests.server.serving import process


def test_a_trigger_from_its_creation_to_its_end(folder: Folder) -> None:
    assert "Triggers are fired by a server" in folder.call("trigger", "list").err
    file = folder.playbook("- step: a\n  tool: { kind: noop }")
    with process(folder.path, "up") as (url, _):
        where = ("--server", url)
        assert "no triggers" in folder.call("trigger", "list", *where).err
        registered = folder.call("register", file, "--json", *where)
        path = json.loads(registered.out)["path"]
        made = folder.call("trigger", "create", "t", path, "--after", "etl/*", "--status", "failed", *where)
        assert made.code == 0, made.err
        assert f"created trigger t: starts {path} after failed executions of etl/*" in made.err
        assert folder.call("trigger", "pause", "t", *where).code == 0
        assert "paused" in folder.call("trigger", "list", *where).out
        resumed = folder.call("trigger", "resume", "t", "--json", *where)
        assert json.loads(resumed.out)["paused"] is False
        assert "(active)" in folder.call("trigger", "show", "t", *where).out
        assert folder.call("trigger", "delete", "t", *where).code == 0
        assert "No trigger t" in folder.call("trigger", "show", "t", *where).err
