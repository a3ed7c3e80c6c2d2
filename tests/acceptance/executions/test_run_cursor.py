"""A killed cursor loop on PostgreSQL: no row is lost, each has one key."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.acceptance import dying
from tests.acceptance.running import Folder, summary
from tests.databases import empty_database

WORKFLOW = """
- step: send
  loop:
    iterator: row
    cursor:
      kind: postgres
      auth: db
      key: id
      claim: |
        UPDATE queue SET state = 'taken'
        WHERE id = (SELECT id FROM queue WHERE state = 'waiting' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1)
        RETURNING id, name
    spec: SPEC
  tool:
    - mark: { kind: postgres, auth: db, command: "INSERT INTO effect VALUES ({{ row.id }}, '{{ _idempotency_key }}')" }
    - say: { kind: noop, result: "{{ row.name }}" }
"""
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with empty_database() as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("NOETL_CREDENTIAL_DB", address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS queue, effect")
        connection.execute("CREATE TABLE queue (id int, name text, state text)")
        connection.execute("CREATE TABLE effect (id int, key text)")
        for number, name in enumerate(NAMES):
            connection.execute("INSERT INTO queue VALUES (%s, %s, 'waiting')", [number, name])
    return Folder(tmp_path)


def rows(address: str, table: str) -> list[Any]:
    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()


@pytest.mark.parametrize("spec", ["{ mode: sequential }", '{ mode: parallel, max_in_flight: "{{ 1 + 1 }}" }'])
@pytest.mark.parametrize("point", dying.POINTS)
def test_a_killed_cursor_loses_no_row_and_does_none_under_two_keys(
    folder: Folder, address: str, point: str, spec: str
) -> None:
    file = folder.playbook(WORKFLOW.replace("SPEC", spec))
    died = subprocess.run(
        [sys.executable, dying.__file__, point, "run", file], cwd=folder.path, capture_output=True, check=False
    )
    assert died.returncode == -9, died.stderr.decode()
    waiting = [row for row in rows(address, "queue") if row[2] == "waiting"]
    if point != "after_work":  # then later rows may have been claimed meanwhile
        assert len(waiting) == (2 if point == "after_commit" else 3)
    (execution_id,) = folder.ids()
    ran = summary(folder.call("resume", execution_id, "--json"))
    assert (ran.code, ran.status) == (0, "completed"), ran.err
    assert ran.result["stats"] == {"total": 4, "succeeded": 4, "failed": 0, "skipped": 0}
    assert [result["data"] for result in ran.result["results"]] == NAMES
    assert {state for _, _, state in rows(address, "queue")} == {"taken"}
    effects = rows(address, "effect")
    assert set(effects) == {(number, f"{execution_id}:send:{number}:mark") for number in range(4)}
    in_flight = 2 if "parallel" in spec else int(point == "after_work")
    assert len(effects) <= 4 + in_flight


def test_two_processes_share_a_table(folder: Folder, address: str) -> None:
    file = folder.playbook(WORKFLOW.replace("SPEC", "{ mode: parallel, max_in_flight: 2 }"))
    with (
        folder.started("run", file, "--json", "--store", "one.db") as one,
        folder.started("run", file, "--json", "--store", "two.db") as two,
    ):
        assert (one.wait(60), two.wait(60)) == (0, 0)
    effects = rows(address, "effect")
    assert [number for number, _ in effects] == [0, 1, 2, 3]
