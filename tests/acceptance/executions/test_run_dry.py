"""`noetl run --dry-run`: the route and the known inputs, without side effects."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.running import Folder

PLAY = """
- step: fetch
  tool: { kind: shell, command: ["touch", "{{ workload.file }}"] }
  next:
    - { step: small, when: "{{ workload.n < 10 }}", args: { n: "{{ workload.n }}" } }
    - { step: big }
- step: small
  tool: { kind: noop, result: "{{ args.n + 1 }}" }
- step: big
  tool: { kind: noop, result: "{{ fetch.stdout }}" }
"""


def test_the_route_is_shown_and_nothing_runs(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    file = folder.playbook(PLAY, workload={"n": 5, "file": "made"})
    ran = folder.call("run", file, "--dry-run")
    assert ran.code == 0, ran.err
    assert "2. small" in ran.out
    assert "result = 6" in ran.out
    assert "big" in ran.out
    assert "(never)" in ran.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["play.yaml"]


def test_the_payload_decides(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    file = folder.playbook(PLAY, workload={"n": 5, "file": "made"})
    ran = folder.call("run", file, "--dry-run", "--json", "--set", "n=50")
    data = json.loads(ran.out)
    assert data["workload"]["n"] == 50
    assert [step["step"] for step in data["route"]] == ["fetch", "big"]
    (command,) = [one for one in data["route"][0]["tasks"][0]["inputs"] if one["name"] == "command"]
    assert command == {"name": "command", "value": ["touch", "made"], "known": True}
    (result,) = data["route"][1]["tasks"][0]["inputs"]
    assert result == {"name": "result", "value": "{{ fetch.stdout }}", "known": False}
