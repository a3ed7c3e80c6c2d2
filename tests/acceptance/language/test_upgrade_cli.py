"""`noetl upgrade`: explain, check, diff, write, pipe, and refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.run import noetl

OLD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: a, path: tests/a }

workflow:
  - step: work
    tool: { kind: noop, result: { n: 1 } }
    vars: { n: "{{ result.n }}" } # kept
"""
NEW = OLD.replace("noetl.io/v2", "noetl.io/v10").replace(
    'vars: { n: "{{ result.n }}" }', 'set: { ctx.n: "{{ outcome.result.n }}" }'
)


@pytest.fixture
def playbook(tmp_path: Path) -> Path:
    path = tmp_path / "playbook.yaml"
    path.write_text(OLD, encoding="utf-8")
    return path


def test_it_explains_each_change_and_writes_nothing(playbook: Path) -> None:
    ran = noetl("upgrade", "playbook.yaml", cwd=playbook.parent)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "playbook.yaml:"
    assert ran.out.splitlines()[1].startswith("  vars (line 8): `vars` kept values for later steps")
    assert ran.err.startswith("1 of 1 file would be upgraded.")
    assert playbook.read_text(encoding="utf-8") == OLD


def test_write_rewrites_once(playbook: Path) -> None:
    assert noetl("upgrade", "--write", str(playbook)).err == "1 of 1 file upgraded.\n"
    assert playbook.read_text(encoding="utf-8") == NEW
    assert noetl("upgrade", "--write", str(playbook)).err == "0 of 1 file upgraded.\n"
    assert noetl("validate", "--strict", str(playbook)).code == 0


def test_check_and_diff_change_nothing(playbook: Path) -> None:
    assert noetl("upgrade", "--check", "--write", str(playbook)).code == 1
    ran = noetl("upgrade", "--diff", "playbook.yaml", cwd=playbook.parent)
    assert ran.code == 0
    assert '+    set: { ctx.n: "{{ outcome.result.n }}" } # kept' in ran.out.splitlines()
    assert playbook.read_text(encoding="utf-8") == OLD


def test_a_pipe_prints_the_new_text() -> None:
    assert noetl("upgrade", "-", stdin=OLD.encode()).out == NEW


def test_what_cannot_be_upgraded_is_told_with_its_place(playbook: Path) -> None:
    playbook.write_text(OLD + "    retry: { next_call: {} }\n", encoding="utf-8")
    ran = noetl("upgrade", "--write", str(playbook))
    assert ran.code == 2
    assert ":9:" in ran.err
    assert "not upgraded" in ran.err


def test_a_run_gives_one_quiet_notice(playbook: Path) -> None:
    ran = noetl("run", str(playbook), cwd=playbook.parent)
    assert ran.code == 0
    assert ran.err.count("older dialect") == 1
