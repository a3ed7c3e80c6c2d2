"""Data cannot control the terminal: every command prints controls as escapes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from noetl.cli.runtime.terminal import escaped, style
from tests.acceptance.running import Folder
from tests.server.serving import process

EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\x85\u202egnp.exe\u2066\x7f\r"
SHOWN = r"\x1b]0;owned\x07\x1b[31m\u009b2J\u0085\u202egnp.exe\u2066\u007f\x0d"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
PLAYBOOK = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: evil, path: evil }}
workflow:
  - step: start
    tool:
      - say:
          kind: python
          input: {{ text: {json.dumps(EVIL)} }}
          code: |
            print("said " + input["text"])
            raise ValueError("raised " + input["text"])
"""
RESULT = PLAYBOOK.replace('raise ValueError("raised " + input["text"])', 'return {input["text"]: input["text"]}')


@pytest.mark.parametrize("playbook", [PLAYBOOK, RESULT])
def test_no_command_prints_controls_of_data(folder: Folder, playbook: str) -> None:
    (folder.path / "evil.yaml").write_text(playbook)
    ran = folder.call("run", "evil.yaml")
    assert SHOWN.replace(r"\x0d", "") in ran.err.replace(r"\x0d", "")
    outputs = [ran.err, ran.out]
    for command in ("logs", "events", "status", "explain", "runs", "replay"):
        for more in ([], ["--json"]):
            ended = folder.call(command, *([] if command == "runs" else ["last"]), *more)
            outputs += [ended.out, ended.err]
    assert [found for found in outputs if RAW.search(found)] == []
    lines = [json.loads(line) for line in folder.call("logs", "last", "--json").out.splitlines()]
    assert lines[0]["text"].startswith("said " + EVIL.rstrip("\r"))  # JSON means the same


def test_data_cannot_begin_another_line_of_a_list(folder: Folder) -> None:
    forged = "k: 0 running, 0 waiting\nlimit forged: 99 running"
    limits = {"spec": {"concurrency": {"key": "{{ workload.k }}"}}}
    steps = '- step: hold\n  tool: { kind: wait, signal: "go" }'
    file = folder.playbook(steps, executor=limits, workload={"k": "x"})
    assert folder.call("token", "create", "--role", "viewer", "--name", forged).code == 0
    with process(folder.path, "up") as (url, _):
        where = ("--server", url)
        assert folder.call("register", file, *where).code == 0
        assert folder.call("exec", "test/play", "--payload", json.dumps({"k": forged}), *where).code == 0
        shown = [folder.call(*words, *where).out for words in (("queue",), ("token", "list"))]
    assert [r"waiting\x0alimit forged" in out for out in shown] == [True, True]
    assert [line for out in shown for line in out.splitlines() if line.startswith("limit forged")] == []


def test_styles_are_kept_and_what_they_hold_is_escaped() -> None:
    assert escaped("a\tb\nc é 漢 👩‍👩‍👧") == "a\tb\nc é 漢 👩‍👩‍👧"
    assert escaped("\ud800") == r"\ud800"
    assert str(style("x\x1b[8m", fg="red")) == "\x1b[31mx\\x1b[8m\x1b[0m"


def test_every_command_prints_through_one_function() -> None:
    sources = Path(__file__).parents[2].joinpath("src/noetl/cli").rglob("*.py")
    calls = re.compile(r"typer\.(echo|secho|style)\(|(?<![.\w])print\(")
    assert [path.name for path in sources if calls.search(path.read_text()) and path.name != "terminal.py"] == []
