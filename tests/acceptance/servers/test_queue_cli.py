"""`noetl queue` and `noetl explain` about work and executions that wait."""

from __future__ import annotations

import json

from tests.acceptance.running import Folder
from tests.server.serving import process


def test_limits_and_pools_are_shown_with_what_waits(folder: Folder) -> None:
    steps = "- step: one\n  tool: { kind: noop }\n  spec: { pool: nowhere, requires: { tags: [cuda] } }"
    file = folder.playbook(steps, executor={"spec": {"concurrency": {"key": "k", "limit": 1}}})
    with process(folder.path, "up") as (url, _):
        where = ("--server", url)
        places = "1 workers with 32 places, 2 of them for playbooks that have nothing running"
        assert folder.call("queue", *where).out.strip() == f"pool (default): 0 queued, 0 leased; {places}"
        assert folder.call("register", file, *where).code == 0
        first, second = (
            json.loads(folder.call("exec", "test/play", "--json", *where).out)["execution_id"] for _ in range(2)
        )
        shown = folder.call("queue", *where).out
        assert "pool nowhere: 1 queued (the oldest for " in shown
        assert "  test/play (new): 1 queued" in shown
        start = "noetl worker start --pool nowhere --tags cuda"
        assert f"  1 of them need the tags cuda, which no ready worker has: {start}" in shown
        assert "limit k: 1 running, 1 waiting (the oldest for " in shown
        found = json.loads(folder.call("queue", "--json", *where).out)
        assert [(row["group"], row["running"], row["waiting"]) for row in found["limits"]] == [("k", 1, 1)]
        assert "pool nowhere: no worker" in folder.call("explain", first, *where).out
        explained = folder.call("explain", second, *where).out
        assert "the limit of 1 running executions with the concurrency key 'k' (place 1 in line)" in explained
        assert first in explained
        assert folder.call("cancel", first, *where).code == 0
        assert "pool nowhere: no worker" in folder.call("explain", second, *where).out
    assert "limit k: 1 running, 0 waiting" in folder.call("queue").out  # the local store
