"""`noetl compare`: two executions side by side, of a store and of a server."""

from __future__ import annotations

import json

from noetl import SyncClient
from tests.acceptance.running import Folder
from tests.server.serving import process

PLAY = """
- step: load
  tool: { kind: noop, result: "{{ workload.n }}" }
  next: { arcs: [{ step: many, when: "{{ workload.n > 1 }}" }, { step: few }] }
- step: many
  tool: { kind: noop }
- step: few
  tool: { kind: noop }
"""
GATED = """
- step: load
  tool: { kind: noop }
  next: use
- step: use
  spec: { policy: { admit: { rules: [{ when: "{{ workload.n > 1 }}", then: { allow: true } }] } } }
  tool: { kind: noop }
"""


def test_two_executions_show_where_they_part(folder: Folder) -> None:
    file = folder.playbook(PLAY, workload={"n": 1})
    few, many = folder.run(file).id, folder.run(file, "--set", "n=5").id
    shown = folder.call("compare", many, few)
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert [line.split()[:3] for line in lines[:2]] == [["this", many, "completed"], ["other", few, "completed"]]
    assert "They part at the router of `load`, decision 1:" in lines
    assert "    → many: {{ workload.n > 1 }} (workload.n = 5)  (only one took it)" in lines
    assert "    ✕ many: {{ workload.n > 1 }} (workload.n = 1)  (only one took it)" in lines
    assert "  n: 1 → 5" in lines
    assert [line.split()[0] for line in lines if line.endswith("differs")] == ["many", "few"]


def test_without_another_one_the_last_good_one_is_compared(folder: Folder) -> None:
    file = folder.playbook(PLAY, workload={"n": 1})
    alone = folder.run(file).id
    refused = folder.call("compare", alone)
    assert refused.code == 2
    assert f"No execution of `test/play` before {alone} has completed." in refused.err
    folder.run(file)
    found = json.loads(folder.call("compare", "last", "--json").out)
    assert (found["other"]["execution_id"], found["split"], found["workload"]) == (alone, None, [])
    assert folder.call("compare", alone, "12345678901").code == 2


def test_a_gate_that_opened_for_one_is_where_they_part(folder: Folder) -> None:
    file = folder.playbook(GATED, workload={"n": 1})
    shut, open_ = folder.call("run", file, "--json"), folder.run(file, "--set", "n=5")
    assert shut.code != 0  # only a parked token is left
    parked = next(one for one in folder.ids() if one != open_.id)
    lines = folder.call("compare", parked, open_.id).out.splitlines()
    assert "They part at the gate of `use`, decision 1:" in lines
    assert "    parks: {{ workload.n > 1 }} (workload.n = 1)" in lines
    assert "    admits: {{ workload.n > 1 }} (workload.n = 5)" in lines


def test_a_server_gives_the_same_answer(folder: Folder) -> None:
    with process(folder.path, "up") as (url, _up), SyncClient(url) as client:
        client.register((folder.path / folder.playbook(PLAY, workload={"n": 1})).read_text())
        ids = [client.execute("test/play", {"n": n}).execution_id for n in (1, 5)]
        for one in ids:
            client.wait(one)
        shown = folder.call("compare", *reversed(ids), "--server", url)
        assert "They part at the router of `load`, decision 1:" in shown.out, shown.err
        asked = folder.call("compare", *reversed(ids), "--json", "--server", url)
        answer = client.compare(ids[1], ids[0])
        assert json.loads(asked.out)["split"]["this"]["seq"] == (answer.split.this.seq if answer.split else None)
