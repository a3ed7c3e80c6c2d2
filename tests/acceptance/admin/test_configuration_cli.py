"""Precedence of settings: playbook over environment over configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.running import Folder, summary

FAILS = """
- {step: a, tool: {kind: python, code: "raise RetryableError('no')"}, next: [{step: b}]}
- {step: b, tool: {kind: noop, result: 1}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / ".noetl").mkdir()
    return Folder(tmp_path)


def attempts(folder: Folder) -> int:
    found = folder.events("last", "--type", "task.attempt.failed")
    return len(found) or len(folder.events("last", "--type", "task.failed"))


def test_file_then_environment_then_playbook(folder: Folder) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text(
        "retries: {plugin: {max_attempts: 3, base_ms: 0}}\npolicies: {on_step_fail: continue}\n"
    )
    file = folder.playbook(FAILS)
    ran = folder.run(file)
    assert (ran.code, ran.data["steps"]["b"]["done"], attempts(folder)) == (1, 1, 3)
    ran = summary(folder.call("run", file, "--json", NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS="2"))
    assert (ran.code, attempts(folder)) == (1, 2)
    spec = {"retries": {"plugin": {"max_attempts": 1}}, "on_step_fail": "halt"}
    ran = summary(folder.call("run", folder.playbook(FAILS, executor={"spec": spec}), "--json"))
    assert (ran.code, "b" in ran.data["steps"], attempts(folder)) == (1, False, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "retries: {plugin: {max_atempts: 3}}\n",
            "noetl.yaml:1:33: unknown setting `retries.plugin.max_atempts`. Did you mean",
        ),
        ("policies: {on_step_fail: explode}\n", "NOETL_POLICIES_ON_STEP_FAIL must be one of halt, continue"),
        ("capacity: [\n", "noetl.yaml:"),
        ("capacity: none\n", "NOETL_CAPACITY must be an integer"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(folder: Folder, text: str, words: str) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text(text)
    ran = folder.call("run", folder.playbook(FAILS))
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "Traceback" not in ran.err


def test_a_named_file_that_is_not_there_is_told(folder: Folder) -> None:
    ran = folder.call("runs", NOETL_CONFIG="gone.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "Cannot read the configuration file gone.yaml: No such file or directory" in ran.err


def test_explain_knows_the_settings_too(folder: Folder) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text("orchestrator: {max_parallel: 1}\n")
    workflow = "- {step: s, tool: {kind: noop}, next: [a, b]}\n- {step: a, tool: {kind: wait, signal: go}}\n- {step: b, tool: {kind: noop}}"
    assert folder.call("run", folder.playbook(workflow)).code == 4
    assert "`max_parallel` allows 1 step-runs at once" in folder.call("explain", "last").out
