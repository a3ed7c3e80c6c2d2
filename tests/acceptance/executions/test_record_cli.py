"""`noetl record` from a store and from a server; the recording can be replayed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.acceptance.running import Folder
from tests.server.serving import process

WORKFLOW = """
- step: read
  tool:
    - name: get
      kind: python
      args: { n: "{{ workload.n }}" }
      code: |
        result = {"n": n, "password": "hunter22", "note": "api_key=abcdefgh12345", "text": "x" * 100000}
    - name: first
      kind: python
      args: { got: "{{ _prev.n }}" }
      code: |
        result = {"more": got + 1}
  next: each
- step: each
  loop: { in: [1, 2, 3], iterator: n }
  tool:
    kind: python
    args: { n: "{{ n }}" }
    code: |
      result = n * 10
  next: child
- step: child
  tool: { kind: playbook, path: child.yaml, input: { n: "{{ read.first.more }}" } }
"""
CHILD = """
- step: double
  tool:
    kind: python
    args: { n: "{{ workload.n }}" }
    code: |
      result = n * 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.playbook(WORKFLOW, workload={"n": 4})
    made.playbook(CHILD, name="child", workload={"n": 0})
    return made


def played(folder: Folder) -> None:
    """Play the cassette: no process is started for Python, and all goes as it went."""
    text = (folder.path / "play.cassette.yaml").read_text(encoding="utf-8")
    assert "hunter22" not in text
    assert "abcdefgh12345" not in text
    made = yaml.safe_load(text)
    calls = {call["call"]: call.get("ok") for call in made["calls"]}
    assert calls["test/play:read.get"]["text"] == "x" * 100_000  # a stored result is there whole
    assert calls["test/play:read.first"] == {"more": 5}
    assert [calls[f"test/play:each.each_task[{index}]"] for index in range(3)] == [10, 20, 30]
    assert calls["test/child:double.double_task"] == 10
    ran = folder.call("test", "play.test.yaml")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "1 test: 1 passed"), ran.out + ran.err


def test_a_run_is_recorded_and_played_again(folder: Folder) -> None:
    assert folder.run("play.yaml").status == "completed"
    ran = folder.call("record", "last", "-o", "play.cassette.yaml", "--test", "play.test.yaml")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "noetl: wrote play.cassette.yaml\nnoetl: wrote play.test.yaml\n"
    played(folder)
    changed = (folder.path / "play.cassette.yaml").read_text(encoding="utf-8").replace("more: 5", "more: 6")
    (folder.path / "play.cassette.yaml").write_text(changed, encoding="utf-8")
    assert folder.call("test", "play.test.yaml").code == 0  # the child is pretended too: its answer is on the cassette


def test_a_run_on_a_server_is_recorded_too(folder: Folder) -> None:
    with process(folder.path, "up", auth="auto") as (url, _):
        assert folder.call("register", "play.yaml", "--server", url).code == 0
        done = folder.call("exec", "test/play", "--server", url, "--wait")
        assert done.code == 0, done.err
        ran = folder.call("record", "last", "-o", "play.cassette.yaml", "--test", "play.test.yaml", "--server", url)
        assert (ran.code, ran.out) == (0, "")
    played(folder)


def test_it_is_printed_and_what_cannot_be_done_is_told(folder: Folder) -> None:
    assert folder.run("play.yaml").status == "completed"
    assert folder.call("record", "last").out.startswith("# Cassette")
    for arguments, said in (
        (("1",), "No execution 1"),
        (("last", "--test", "x.test.yaml"), "Name it with -o FILE"),
        (("last", "-o", "no/such/file"), "Cannot write no/such/file"),
    ):
        ran = folder.call("record", *arguments)
        assert (ran.code, said in ran.err) == (2, True), ran.err


def test_a_file_that_is_no_cassette_is_told(folder: Folder) -> None:
    (folder.path / "play.test.yaml").write_text(
        "cassette: other.yaml\ntests: [{name: one, expect: {status: completed}}]\n", encoding="utf-8"
    )
    ran = folder.call("test", "play.test.yaml")
    assert (ran.code, "Cannot read the cassette: other.yaml: no such file" in ran.err) == (2, True)
    (folder.path / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    ran = folder.call("test", "play.test.yaml")
    assert (ran.code, "other.yaml is not a cassette" in ran.err) == (2, True)
