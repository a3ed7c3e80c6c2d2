"""Playbooks that call playbooks, in one local run."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.acceptance.running import Folder, summary, until

CHILD = """
- step: twice
  tool: { kind: noop, result: { n: "{{ workload.n * 2 }}" } }
"""


@pytest.mark.parametrize("path", ["test/child", "child.yaml", "./child.yaml"])
def test_a_child_by_its_path_or_its_file(folder: Folder, path: str) -> None:
    folder.playbook(CHILD, name="child", workload={"n": 0})
    file = folder.playbook(
        f"""
        - step: call
          tool: {{ kind: playbook, path: {path}, input: {{ n: 21 }} }}
        """
    )
    ran = folder.run(file)
    assert (ran.status, ran.result) == ("completed", {"n": 42})
    assert len(folder.ids()) == 2
    assert (
        json.loads(folder.call("status", "last", "--json").out)["execution_id"] == ran.data["execution_id"]
    )  # not the child


def test_a_child_below_a_linked_folder_is_found_and_links_that_go_round_do_no_harm(tmp_path: Path) -> None:
    own, shared = Folder(tmp_path / "own"), Folder(tmp_path / "shared")
    (own.path / "deep").mkdir(parents=True)
    (shared.path / "deep").mkdir(parents=True)
    Folder(shared.path / "deep").playbook(CHILD, name="child", workload={"n": 0})
    (own.path / "lib").symlink_to(shared.path)
    (own.path / "deep" / "up").symlink_to(own.path)
    (shared.path / "deep" / "back").symlink_to(own.path)
    (own.path / "gone").symlink_to(own.path / "nowhere")
    ran = own.run(own.playbook("- step: call\n  tool: { kind: playbook, path: test/child, input: { n: 21 } }"))
    assert (ran.code, ran.result) == (0, {"n": 42})
    checked = own.call("validate", "play.yaml")
    assert (checked.code, "test/child" in checked.out + checked.err) == (0, False)


def test_children_of_a_loop_each_have_their_own_log(folder: Folder) -> None:
    folder.playbook(CHILD, name="child", workload={"n": 0})
    file = folder.playbook(
        """
        - step: each
          loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel, max_in_flight: 2 } }
          tool: { kind: playbook, path: test/child, input: { n: "{{ iter.n }}" } }
        """
    )
    ran = folder.run(file)
    assert [found["n"] for found in ran.result["results"]] == [2, 4, 6]
    assert len(folder.ids()) == 4


def test_a_child_that_fails_fails_its_parent(folder: Folder) -> None:
    folder.playbook("- step: bad\n  tool: { kind: python, code: 'raise ValueError(7)' }", name="child")
    ran = folder.run(folder.playbook("- step: call\n  tool: { kind: playbook, path: test/child }"))
    assert ran.code == 1
    assert "7" in ran.data["error"]["message"]


def test_a_run_whose_child_waits_for_a_signal_ends_with_4_and_goes_on_by_it(folder: Folder) -> None:
    folder.playbook("- step: ask\n  tool: { kind: wait, signal: go }", name="child")
    ran = folder.run(folder.playbook("- step: call\n  tool: { kind: playbook, path: test/child }"))
    assert ran.code == 4
    child = next(found for found in folder.ids() if found != ran.id)
    assert summary(folder.call("signal", child, "go", '"yes"', "--json")).status == "completed"
    assert summary(folder.call("resume", ran.id, "--json")).result == "yes"


def test_a_killed_run_takes_its_children_along_when_it_is_resumed(folder: Folder) -> None:
    workflow = f"""
    - step: busy
      tool: {{ kind: shell, cwd: '{folder.path}', command: 'test -e begun || {{ touch begun; sleep 600; }}' }}
    """
    folder.playbook(workflow, name="child")
    with folder.started(
        "run", folder.playbook("- step: call\n  tool: { kind: playbook, path: test/child }")
    ) as process:
        until((folder.path / "begun").exists, "the child's step")
        process.send_signal(signal.SIGKILL)
        process.wait()
    parent = folder.ids()[-1]
    ran = summary(folder.call("resume", parent, "--json"))
    assert (ran.status, ran.result["returncode"]) == ("completed", 0)


def test_a_child_that_is_not_there_is_told_before_anything_runs(folder: Folder) -> None:
    ran = folder.call("run", folder.playbook("- step: call\n  tool: { kind: playbook, path: test/nowhere }"))
    assert "test/nowhere" in ran.err
    assert ran.code != 0
