"""`noetl admin` as a process: a damaged store is reported, rebuilt and usable."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from tests.acceptance.run import Ran, noetl

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


def call(folder: Path, *words: str) -> Ran:
    return noetl(*words, "--store", str(folder / "noetl.db"), cwd=folder)


def test_a_damaged_store_is_told_of_made_again_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "playbook.yaml").write_text(PLAYBOOK)
    assert call(tmp_path, "run", "playbook.yaml").code == 4
    sound = call(tmp_path, "admin", "rebuild", "--check")
    assert (sound.code, sound.out) == (0, "all projections match the event log\n")
    connection = sqlite3.connect(tmp_path / "noetl.db")
    for table in ("execution", "queue", "timer", "message", "snapshot"):
        connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()
    damaged = call(tmp_path, "admin", "rebuild", "--check")
    assert damaged.code == 1
    assert "the row ends at event 0" in damaged.out
    made = call(tmp_path, "admin", "rebuild")
    assert (made.code, made.out) == (0, "rebuilt 1 executions from the event log\n")
    assert call(tmp_path, "admin", "rebuild", "--check").code == 0
    assert call(tmp_path, "signal", "last", "go").code == 0
    assert '"completed"' in call(tmp_path, "status", "last", "--json").out


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
    assert call(tmp_path, "run", "playbook.yaml").code == 0
    told = json.loads(call(tmp_path, "admin", "gc", "--dry-run", "--json").out)
    assert (told["dry_run"], told["bytes"], [one["cause"] for one in told["results"]]) == (True, 21, ["scope"])
    removed = call(tmp_path, "admin", "gc")
    assert removed.out == "scope ended: 1 results, 21 bytes\nremoved 1 stored results\n"
    assert call(tmp_path, "admin", "gc").out == "removed 0 stored results\n"
    forked = call(tmp_path, "fork", "last", "--from", "again", "--json")
    assert forked.code == 1
    assert "was removed at" in forked.out
    assert "its scope is `step`" in forked.out


def test_it_shows_how_far_the_log_is_exported(tmp_path: Path) -> None:
    (tmp_path / "playbook.yaml").write_text(PLAYBOOK)
    assert call(tmp_path, "run", "playbook.yaml").code == 4
    (tmp_path / "noetl.yaml").write_text(f"export: {{parquet: {{folder: '{tmp_path}/log'}}}}\n")
    shown = noetl("admin", "export", "--store", str(tmp_path / "noetl.db"), cwd=tmp_path, NOETL_CONFIG="noetl.yaml")
    assert shown.code == 0
    first, second, *_ = shown.out.splitlines()
    assert first.split() == ["clickhouse", "off"]
    assert second.split()[0::2] == ["parquet", "events"]
    assert int(second.split()[1]) > 5
    found = json.loads(call(tmp_path, "admin", "export", "--reset", "parquet", "--json").out)
    assert [one["target"] for one in found] == ["clickhouse", "parquet", "otlp", "openlineage"]
    assert not any(one["is_on"] for one in found)
    wrong = call(tmp_path, "admin", "export", "--reset", "kafka")
    assert (wrong.code, "no export target `kafka`" in wrong.err) == (2, True)


def test_an_unknown_action_is_told(tmp_path: Path) -> None:
    told = call(tmp_path, "admin", "refresh")
    assert told.code == 2
    assert "No such command 'refresh'" in told.err
