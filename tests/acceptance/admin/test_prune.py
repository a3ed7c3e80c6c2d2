"""`noetl admin prune` on a SQLite store: ended executions are removed."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.acceptance.running import Folder

STORED = "- step: a\n  tool: { kind: noop, result: '0123456789', spec: { result: { inline_max_bytes: 5 } } }"
FAILS = "- step: a\n  tool: { kind: python, code: 'raise ValueError(1)' }"
WAITS = "- step: a\n  tool: { kind: wait, signal: go }"
LATER = "2999-01-01"


def rows_of(folder: Folder, *executions: str) -> set[str]:
    """Return the tables that have a row of one of these executions."""
    with closing(sqlite3.connect(folder.path / ".noetl" / "noetl.db")) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        with_id = [
            one for one in tables if "execution_id" in {row[1] for row in store.execute(f"PRAGMA table_info({one})")}
        ]
        marks = ",".join("?" * len(executions))
        return {
            one
            for one in with_id
            if store.execute(f"SELECT 1 FROM {one} WHERE execution_id IN ({marks})", executions).fetchone()
        }


def blobs(folder: Folder) -> int:
    with closing(sqlite3.connect(folder.path / ".noetl" / "noetl.db")) as store:
        return int(store.execute("SELECT count(*) FROM result").fetchone()[0])


def test_ended_executions_go_with_their_rows_and_results(folder: Folder) -> None:
    done, failed = (folder.run(folder.playbook(text)).id for text in (STORED, FAILS))
    waits = folder.run(folder.playbook(WAITS)).id
    assert {"execution", "event_log", "dlq"} <= rows_of(folder, done, failed)
    assert blobs(folder) > 0
    told = folder.call("admin", "prune", "--before", LATER, "--dry-run")
    assert told.code == 0, told.err
    assert [line.split()[0] for line in told.out.splitlines()] == [failed, done, "would"]
    assert sorted(folder.ids()) == sorted((done, failed, waits))
    pruned = folder.call("admin", "prune", "--before", LATER)
    assert pruned.out == "removed 2 executions and 1 stored results\n", pruned.err
    assert folder.ids() == [waits]
    assert rows_of(folder, done, failed) == set()
    assert blobs(folder) == 0
    assert folder.call("signal", waits, "go").code == 0


def test_a_status_and_an_age_choose(folder: Folder) -> None:
    done, failed = (folder.run(folder.playbook(text)).id for text in (STORED, FAILS))
    assert folder.call("admin", "prune", "--older-than", "1d").out == "removed 0 executions and 0 stored results\n"
    assert sorted(folder.ids()) == sorted((done, failed))
    assert folder.call("admin", "prune", "--before", LATER, "--status", "failed").code == 0
    assert folder.ids() == [done]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--older-than", "30"), "is not a duration"),
        (("--older-than", "1d", "--before", LATER), "Remove one of them"),
        (("--older-than", "1d", "--status", "running"), "no status of an ended execution"),
        (("--dry-run",), "Add --older-than"),
        (("--before", LATER, "--archive", "there"), "PostgreSQL"),
    ],
)
def test_what_does_not_fit_together_is_refused(folder: Folder, given: tuple[str, ...], said: str) -> None:
    done = folder.run(folder.playbook(STORED)).id
    refused = folder.call("admin", "prune", *given)
    assert (refused.code, said in refused.err) == (2, True), refused.err
    assert folder.ids() == [done]
