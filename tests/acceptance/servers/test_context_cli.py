"""`noetl context`: named servers, a private file, and where commands go."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from tests.acceptance.run import Ran
from tests.acceptance.run import noetl as run


def noetl(*given: str, cwd: Path | None = None, env: dict[str, str]) -> Ran:
    return run(*given, cwd=cwd, stdin=None, **env)


def test_contexts_are_added_used_listed_and_removed(tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert noetl("context", "add", "prod", "http://127.0.0.1:9", "--token", "noetl_x", env=home).code == 0
    assert noetl("context", "add", "other", "http://127.0.0.1:10", env=home).code == 0
    file = tmp_path / "noetl" / "contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rows = [json.loads(line) for line in noetl("context", "list", "--json", env=home).out.splitlines()]
    assert [(row["name"], row["current"], row["has_token"]) for row in rows] == [
        ("local", False, False),
        ("prod", True, True),
        ("other", False, False),
    ]
    assert "noetl_x" not in noetl("context", "list", env=home).out
    assert noetl("context", "use", "other", env=home).code == 0
    asked = noetl("runs", cwd=tmp_path, env=home)
    assert (asked.code, "http://127.0.0.1:10 cannot be reached" in asked.err) == (1, True)
    assert noetl("context", "remove", "other", env=home).code == 0
    asked = noetl("runs", cwd=tmp_path, env=home)
    assert (asked.code, "No store at" in asked.err) == (2, True)


def test_an_option_wins_over_the_variable_and_that_over_the_context(tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path), "NOETL_SERVER_URL": "http://127.0.0.1:11"}
    assert noetl("context", "add", "prod", "http://127.0.0.1:9", env=home).code == 0
    assert "http://127.0.0.1:11 cannot" in noetl("runs", env=home).err
    assert "http://127.0.0.1:12 cannot" in noetl("runs", "--server", "http://127.0.0.1:12", env=home).err
    assert "No store at here.db" in noetl("runs", "--store", "here.db", cwd=tmp_path, env=home).err


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    for given, said in (
        (("add", "x"), "Missing argument 'URL'"),
        (("add", "x", "localhost"), "is not the address of a server"),
        (("add", "local", "http://h"), "Choose another name"),
        (("use", "x"), "No context `x`"),
        (("what",), "No such command 'what'"),
        (("use",), "Missing argument 'NAME'"),
    ):
        ran = noetl("context", *given, env=home)
        assert (ran.code, said in ran.err) == (2, True), ran.err
    needs = noetl("exec", "a/b", cwd=tmp_path, env=home)
    assert (needs.code, "needs a server" in needs.err) == (2, True)
    (tmp_path / "noetl").mkdir()
    (tmp_path / "noetl" / "contexts.json").write_text("{")
    ran = noetl("runs", cwd=tmp_path, env=home)
    assert (ran.code, "Cannot read the contexts" in ran.err) == (2, True)
