"""Completion in a real bash: commands, options, actions, executions and steps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.run import noetl
from tests.acceptance.running import Folder

WORKFLOW = """
- step: fetch
  tool: { kind: noop }
  next: fold
- step: fold
  tool: { kind: noop }
"""


def completed(folder: Path, *words: str) -> list[str]:
    """What bash would offer where the last of these words is being typed."""
    program = folder / "bin" / "noetl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m noetl "$@"\n')
    program.chmod(0o755)
    script = """
    set -eu
    eval "$(noetl completion bash)"
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    asked=$(complete -p noetl); asked=${asked##*-F }; asked=${asked%% *}
    "$asked" noetl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\\n' "${COMPREPLY[@]-}"
    """
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(folder)}
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", "noetl", *words],
        cwd=folder,
        env={**os.environ, **path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split()


def test_commands_options_and_words_are_completed(tmp_path: Path) -> None:
    assert completed(tmp_path, "ru") == ["run", "runs"]
    assert completed(tmp_path, "exec", "--pri") == ["--priority"]
    assert completed(tmp_path, "token", "re") == ["revoke"]
    assert completed(tmp_path, "context", "use", "") == ["local"]
    assert completed(tmp_path, "nosuch", "x") == []


def test_executions_and_steps_are_completed(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    file = folder.playbook(WORKFLOW)
    assert completed(tmp_path, "status", "") == ["last"]  # there is no store yet
    ran = folder.run(file)
    assert ran.status == "completed"
    (found,) = folder.ids()
    assert completed(tmp_path, "status", found[:6]) == [found]
    assert completed(tmp_path, "fork", found, "--from", "f") == ["fetch", "fold"]
    assert completed(tmp_path, "logs", "last", "--step", "fo") == ["fold"]
    assert completed(tmp_path, "run", str(file), "--step", "fe") == ["fetch"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_part(shell: str) -> None:
    ran = noetl("completion", shell)
    assert (ran.code, "_NOETL_COMPLETE" in ran.out) == (0, True)


def test_another_shell_is_told_of(tmp_path: Path) -> None:
    ran = noetl("completion", "tcsh", cwd=tmp_path)
    assert (ran.code, "bash, zsh, fish" in ran.err) == (2, True)


def test_a_server_that_is_away_is_no_trouble(tmp_path: Path) -> None:
    assert completed(tmp_path, "exec", "--server", "http://127.0.0.1:9", "a") == []
