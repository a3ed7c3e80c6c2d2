"""`noetl admin` as a process: a damaged store is reported, rebuilt and usable."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

PLAYBOOK = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: gate, path: tests/gate}
workflow:
  - step: wait
    tool: {kind: wait, signal: go}
    next: after
  - {step: after, tool: {kind: noop}}
"""


def noetl(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "noetl", *words, "--store", str(folder / "noetl.db")]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, check=False)


def test_a_damaged_store_is_told_of_made_again_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "playbook.yaml").write_text(PLAYBOOK)
    assert noetl(tmp_path, "run", "playbook.yaml").returncode == 4
    sound = noetl(tmp_path, "admin", "rebuild", "--check")
    assert (sound.returncode, sound.stdout) == (0, "all projections match the event log\n")
    connection = sqlite3.connect(tmp_path / "noetl.db")
    for table in ("execution", "queue", "timer", "message", "snapshot"):
        connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()
    damaged = noetl(tmp_path, "admin", "rebuild", "--check")
    assert damaged.returncode == 1
    assert "the row ends at event 0" in damaged.stdout
    made = noetl(tmp_path, "admin", "rebuild")
    assert (made.returncode, made.stdout) == (0, "rebuilt 1 executions from the event log\n")
    assert noetl(tmp_path, "admin", "rebuild", "--check").returncode == 0
    assert noetl(tmp_path, "signal", "last", "go").returncode == 0
    assert '"completed"' in noetl(tmp_path, "status", "last", "--json").stdout


LARGE = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: large, path: tests/large}
workflow:
  - step: make
    tool:
      kind: noop
      result: {text: "0123456789"}
      spec: {result: {inline_max_bytes: 5, store: {scope: step}}}
    next: read
  - {step: read, tool: {kind: noop}, next: again}
  - step: again
    tool: {kind: noop, result: "{{ make.text }}"}
"""


def test_stored_results_go_when_their_scope_is_over(tmp_path: Path) -> None:
    (tmp_path / "playbook.yaml").write_text(LARGE)
    assert noetl(tmp_path, "run", "playbook.yaml").returncode == 0
    told = json.loads(noetl(tmp_path, "admin", "gc", "--dry-run", "--json").stdout)
    assert (told["dry_run"], told["bytes"], [one["cause"] for one in told["results"]]) == (True, 21, ["scope"])
    removed = noetl(tmp_path, "admin", "gc")
    assert removed.stdout == "scope ended: 1 results, 21 bytes\nremoved 1 stored results\n"
    assert noetl(tmp_path, "admin", "gc").stdout == "removed 0 stored results\n"
    forked = noetl(tmp_path, "fork", "last", "--from", "again", "--json")
    assert forked.returncode == 1
    assert "was removed at" in forked.stdout
    assert "its scope is `step`" in forked.stdout


def test_an_unknown_action_is_told(tmp_path: Path) -> None:
    told = noetl(tmp_path, "admin", "refresh")
    assert told.returncode == 2
    assert "No such command 'refresh'" in told.stderr
