"""`noetl subscription` on a server of its own: made, tested, polled, deleted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.acceptance.running import Folder, until
from tests.server.serving import process

PLAYBOOK = """apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: ship, path: test/ship}
executor: {spec: {workload_schema: {properties: {n: {type: integer}}}}}
workload: {n: 0}
workflow:
  - {step: one, tool: {kind: noop}}
"""


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    os.utime(folder / name, (1_700_000_000, 1_700_000_000))


def test_a_subscription_from_its_creation_to_its_end(folder: Folder) -> None:
    assert "Subscriptions are polled by a server" in folder.call("subscription", "list").err
    drop = folder.path / "drop"
    drop.mkdir()
    (folder.path / "ship.yaml").write_text(PLAYBOOK)
    with process(folder.path, "up", environment={"NOETL_SUBSCRIPTION_FOLDERS": str(drop)}) as (url, _):
        where = ("--server", url)
        assert folder.call("register", "ship.yaml", *where).code == 0
        assert "no subscriptions" in folder.call("subscription", "list", *where).err
        create = ("subscription", "create", "in", "test/ship", *where)
        for given, text in (((), "needs --source"), (("--source", "folder"), "needs `folder`")):
            refused = folder.call(*create, *given)
            assert refused.code != 0
            assert text in refused.err
            assert "Traceback" not in refused.err
        fields = (
            "--source",
            "folder",
            "--folder",
            str(drop),
            "--every",
            "1s",
            "--payload",
            '{"n": "{{ message.data.n }}"}',
        )
        made = folder.call(*create, *fields, "--paused")
        assert made.code == 0, made.err
        assert f"created subscription in: folder {drop} starts test/ship" in made.err
        put(drop, "a.json", '{"n": 4}')
        put(drop, "b.json", "{")
        tested = folder.call("subscription", "test", "in", *where)
        assert '{"n":4}' in tested.out.replace(" ", "")
        assert "would be a dead letter: It is not JSON" in tested.out
        assert "the source answers, 2 messages waiting" in tested.err
        assert folder.call("subscription", "resume", "in", *where).code == 0

        def row() -> Any:
            return json.loads(folder.call("subscription", "show", "in", "--json", *where).out)

        until(lambda: row()["received"] + row()["poisoned"] == 2, "both files")
        assert "1 messages taken in, 1 dead letters" in folder.call("subscription", "show", "in", *where).out
        assert "folder  active" in folder.call("subscription", "list", *where).out
        [letter] = folder.call("dlq", "list", "--kind", "subscription", "--json", *where).out.splitlines()
        name = json.loads(letter)["message_id"]
        assert "Discard it, or patch its whole `data`" in folder.call("dlq", "replay", name, *where).err
        assert folder.call("dlq", "discard", name, "--reason", "broken", *where).code == 0
        assert folder.call("subscription", "pause", "in", *where).code == 0
        assert folder.call("subscription", "delete", "in", *where).code == 0
        assert "No subscription in" in folder.call("subscription", "show", "in", *where).err
