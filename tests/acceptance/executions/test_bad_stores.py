"""Damaged, foreign or missing stores: a clear error, an exit code, no more loss."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.run import Ran, noetl_beside_frozen
from tests.acceptance.running import Folder, summary, until

HELLO = "- step: a\n  tool: { kind: noop, result: 1 }"
ASK = "- step: ask\n  tool: { kind: wait, signal: go }\n  next: say\n- step: say\n  tool: { kind: noop, result: WORD }"


def store(folder: Folder) -> Path:
    return folder.path / ".noetl" / "noetl.db"


def settled(folder: Folder) -> Path:
    """Run something, and bring everything that was written ahead into the file."""
    assert folder.call("run", folder.playbook(HELLO)).code == 0
    with closing(sqlite3.connect(store(folder))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return store(folder)


def told(ran: Ran, code: int, *words: str) -> None:
    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err
    for word in words:
        assert word in " ".join(ran.err.split()), ran.err


def test_a_store_that_is_damaged(folder: Folder) -> None:
    file = settled(folder)
    data = bytearray(file.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)  # the first page says what there is; everything else is rubbish
    file.write_bytes(data)
    told(folder.call("runs"), 1, "noetl.db is damaged", "backup", "noetl admin rebuild")
    told(folder.call("run", "play.yaml"), 1, "noetl.db is damaged")
    assert file.read_bytes()[4096:] == data[4096:]


def test_a_store_that_is_no_store_says_so(folder: Folder) -> None:
    (folder.path / "notes.txt").write_text("not a store" * 1_000)
    folder.playbook(HELLO)
    told(folder.call("run", "play.yaml", "--store", "notes.txt"), 1, "notes.txt is not a NoETL store", "--store")


def test_a_store_that_may_only_be_read(folder: Folder) -> None:
    file = settled(folder)
    data = bytearray(file.read_bytes())
    data[18] = 9  # a file whose format may be read and not written: it is so for root, too
    file.write_bytes(data)
    told(folder.call("run", "play.yaml"), 1, "noetl.db", "read")


def read_only(folder: Folder, *arguments: str) -> Ran:
    """Run a command while the folder of the store cannot be written."""
    home = folder.path / ".noetl"
    if os.geteuid() == 0:  # modes do not hold root: mount it read-only, for this command alone
        return noetl_beside_frozen(home, *arguments, cwd=folder.path)
    paths = [home, *home.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(modes[path] & 0o7555)
    try:
        return folder.call(*arguments)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.mark.parametrize("left", ["", "-wal", "-wal -shm"])
def test_a_store_that_cannot_be_written_can_be_looked_at(folder: Folder, left: str) -> None:
    """A killed process leaves a write-ahead log; a copy may lack its index."""
    settled(folder)
    with closing(sqlite3.connect(store(folder))) as connection:  # keeps what is written ahead until it is copied
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("SELECT 1 FROM event_log").fetchone()
        assert folder.call("run", folder.playbook(ASK.replace("WORD", "1"), "ask")).code == 4
        copies = {name: Path(f"{store(folder)}{name}").read_bytes() for name in ("", "-wal", "-shm")}
    if left:
        Path(f"{store(folder)}-shm").unlink(missing_ok=True)
        for name in ("", *left.split()):
            Path(f"{store(folder)}{name}").write_bytes(copies[name])
    assert sorted(path.name for path in store(folder).parent.glob("noetl.db-*")) == sorted(
        f"noetl.db{name}" for name in left.split()
    )
    runs = read_only(folder, "runs")
    assert (runs.code, len(runs.out.splitlines())) == (0, 2), runs.err
    for command in ("status", "explain", "events", "logs"):
        ran = read_only(folder, command, "last")
        assert (ran.code, ran.err) == (0, ""), (command, ran)
    assert "waits for  the signal `go`" in read_only(folder, "explain", "last").out
    assert read_only(folder, "replay", "last").code == 0
    assert read_only(folder, "admin", "rebuild", "--check").code == 0
    for words in (
        ("signal", "last", "go"),
        ("cancel", "last"),
        ("run", "play.yaml"),
        ("resume", "last"),
        ("delete", "last"),
    ):
        told(read_only(folder, *words), 1, "noetl.db is read-only, so nothing can be written to it. Make the file")
    assert folder.call("signal", "last", "go").code == 0


def test_a_store_of_a_newer_noetl(folder: Folder) -> None:
    file = settled(folder)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    told(folder.call("run", "play.yaml"), 2, "newer version of NoETL", "schema level 99", "--store")
    told(folder.call("runs"), 2, "newer version of NoETL")


def test_a_store_of_a_development_version(folder: Folder) -> None:
    file = settled(folder)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA application_id = 0")
    told(folder.call("run", "play.yaml"), 2, "noetl.db was written by a development version", "Move the file away")


def test_events_of_a_newer_noetl(folder: Folder) -> None:
    assert folder.call("run", folder.playbook(ASK)).code == 4
    [execution_id] = folder.ids()
    with closing(sqlite3.connect(store(folder))) as connection, connection:
        changed = connection.execute(
            "UPDATE event_log SET events = json_set(events, '$[0][16]', 99) WHERE seq = size"
        ).rowcount
    assert changed == 1
    told(folder.call("signal", execution_id, "go"), 1, execution_id, "version 99")
    told(folder.call("admin", "rebuild"), 1, execution_id, "newer version")


def test_a_playbook_that_changes_while_an_execution_waits(folder: Folder) -> None:
    file = folder.playbook(ASK.replace("WORD", "old"))
    assert folder.call("run", file).code == 4
    waiting = folder.ids()[0]
    folder.playbook(ASK.replace("WORD", "new"))
    ran = summary(folder.call("signal", waiting, "go", "--json"))
    assert (ran.code, ran.result) == (0, "old")
    assert folder.call("run", file).code == 4
    assert summary(folder.call("signal", folder.ids()[0], "go", "--json")).result == "new"


LONG = """
- step: a
  tool: { kind: shell, command: "touch begun; while [ ! -e gone ]; do sleep 0.02; done; echo a >> ran" }
  next: b
- step: b
  tool: { kind: shell, command: "echo b >> ran" }
"""


def _lost(folder: Folder, lose: Callable[[], object]) -> str:
    """Run until the store is lost on the way; return the output."""
    with folder.started("run", folder.playbook(LONG), "--json") as process:
        until((folder.path / "begun").exists, "the step")
        lose()
        (folder.path / "gone").touch()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, b"")
    told = err.decode()
    assert "was deleted, moved or replaced while in use" in told
    assert "Traceback" not in told
    return told


def test_a_store_that_is_deleted_while_an_execution_runs(folder: Folder) -> None:
    told = _lost(folder, lambda: shutil.rmtree(folder.path / ".noetl"))
    assert "execution " in told
    assert "b" not in folder.lines("ran")  # nothing goes on that could not be kept
    assert folder.ids() == []
    assert folder.call("run", folder.playbook(HELLO)).code == 0


def test_a_store_that_is_put_back_goes_on_where_it_was(folder: Folder) -> None:
    home, away = folder.path / ".noetl", folder.path / "away"
    told = _lost(folder, lambda: home.rename(away))
    shutil.rmtree(home, ignore_errors=True)
    away.rename(home)
    (lost,) = folder.ids()
    assert f"`noetl resume {lost}`" in told
    ran = summary(folder.call("resume", lost, "--json"))
    assert (ran.code, ran.status) == (0, "completed")
    assert folder.lines("ran")[-1] == "b"


def test_a_store_that_is_replaced_by_another_is_not_mistaken_for_it(folder: Folder) -> None:
    def replace() -> None:
        shutil.rmtree(folder.path / ".noetl")
        assert folder.call("run", folder.playbook(HELLO, "other")).code == 0

    _lost(folder, replace)
    assert len(folder.ids()) == 1
    assert folder.call("events", "last").code == 0
