"""`noetl audit` on a local store and on a server: listed, verified, exported."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from tests.acceptance.running import Folder
from tests.server.serving import process


def test_a_local_trail_is_verified_exported_and_verified_offline(folder: Folder) -> None:
    for name in ("ada", "bob"):
        assert folder.call("token", "create", "--role", "viewer", "--name", name).code == 0
    listed = folder.call("audit", "list")
    assert "token.create" in listed.out
    assert "- -> valid viewer" in listed.out
    intact = folder.call("audit", "verify")
    assert intact.code == 0, intact.err
    assert intact.out.startswith("2 entries intact, head 2:")
    head = intact.out.split()[-1]
    assert folder.call("audit", "export", "--file", "trail.jsonl").code == 0
    assert folder.call("audit", "verify", "trail.jsonl", "--expect", head).code == 0
    assert "exists already" in folder.call("audit", "export", "--file", "trail.jsonl").err
    lines = folder.call("audit", "export").out.splitlines()
    assert [json.loads(line).get("position") for line in lines] == [1, 2, None]
    assert lines == folder.lines("trail.jsonl")
    (folder.path / "trail.jsonl").write_text(lines[1] + "\n" + lines[2] + "\n", encoding="utf-8")
    broken = folder.call("audit", "verify", "trail.jsonl")
    assert broken.code == 1
    assert broken.out.startswith("broken at place 1: deleted.")
    with closing(sqlite3.connect(folder.path / ".noetl" / "noetl.db")) as file, file:
        file.execute("UPDATE audit SET entity = 'x' WHERE number = 2")
    broken = folder.call("audit", "verify", "--json")
    assert broken.code == 1
    assert json.loads(broken.out)["broken"]["number"] == 2


def test_the_trail_of_a_server_is_verified_and_exported(folder: Folder) -> None:
    file = folder.playbook("- step: say\n  tool: { kind: noop }")
    with process(folder.path, "up") as (url, _):
        where = ("--server", url)
        assert folder.call("register", file, *where).code == 0
        assert "playbook.register" in folder.call("audit", "list", "--entity", "test/play", *where).out
        assert folder.call("audit", "verify", *where).code == 0
        assert folder.call("audit", "export", "--file", "trail.jsonl", *where).code == 0
        assert folder.call("audit", "verify", "trail.jsonl").code == 0


def test_entries_that_were_tampered_with_are_listed_with_the_others(folder: Folder) -> None:
    for name in ("ada", "bob", "eve", "fay"):
        assert folder.call("token", "create", "--role", "viewer", "--name", name).code == 0
    with closing(sqlite3.connect(folder.path / ".noetl" / "noetl.db")) as file, file:
        file.execute("UPDATE audit SET at = 'abc' WHERE number = 1")
        file.execute("UPDATE audit SET actor = x'ff00' WHERE number = 2")
        file.execute("UPDATE audit SET at = 9000000000000000000 WHERE number = 3")
    with process(folder.path, "serve") as (url, _):
        for where in ((), ("--server", url)):
            listed = folder.call("audit", "list", *where)
            assert (listed.code, listed.err) == (0, "")
            lines = listed.out.splitlines()
            assert [line.split()[0] for line in lines] == ["4", "3", "2", "1"]
            assert [line.partition("unreadable: ")[2].partition(";")[0] for line in lines] == ["", "", "actor", "at"]
            assert "9000000000000000000" in lines[1]
            assert folder.call("audit", "verify", *where).out.startswith("broken at place 1 (entry 1): changed.")


def test_mistakes_are_told_without_a_trace(folder: Folder) -> None:
    for arguments, text in (
        (("list",), "No store at"),
        (("verify", "none.jsonl"), "Cannot read none.jsonl"),
        (("export", "--file", "trail.jsonl"), "No store at"),
        (("export", "--file", "no/such/file"), "Cannot write no/such/file"),
    ):
        ran = folder.call("audit", *arguments)
        assert ran.code != 0
        assert text in ran.err
        assert "Traceback" not in ran.err
    assert list(folder.path.iterdir()) == []
