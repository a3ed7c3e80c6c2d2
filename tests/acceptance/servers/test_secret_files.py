"""Tokens and database URLs from files: options, variables, configuration file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from noetl.settings import ServerSettings
from tests.acceptance.run import Ran, noetl
from tests.server.serving import listening, places

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: x, path: x }
workflow:
  - step: start
    tool: { kind: noop }
"""
URL = "postgresql://noetl:s3cret@127.0.0.1:9/noetl"


@pytest.mark.asyncio
async def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}

    async def call(*given: str, **more: str) -> Ran:
        return await asyncio.to_thread(lambda: noetl(*given, cwd=tmp_path, stdin=None, **env, **more))

    made = await call("token", "create", "--role", "viewer", "--store", str(places(tmp_path).store))
    assert made.code == 0, made.err
    (tmp_path / "token.txt").write_text(made.out)
    async with listening(tmp_path, ServerSettings(auth="token")) as served:
        assert (await call("runs", "--server", served.url)).code != 0
        by_variable = await call("runs", "--server", served.url, NOETL_TOKEN_FILE=str(tmp_path / "token.txt"))
        assert (by_variable.code, by_variable.out) == (0, "no executions\n"), by_variable.err
        by_option = await call("worker", "list", "--server", served.url, "--token", "@token.txt")
        assert by_option.code == 0, by_option.err
        (tmp_path / "noetl.yaml").write_text("token_file: token.txt\n")
        by_file = await call("runs", "--server", served.url, NOETL_CONFIG="noetl.yaml")
        assert by_file.code == 0, by_file.err
        wins = await call("runs", "--server", served.url, NOETL_CONFIG="noetl.yaml", NOETL_TOKEN="wrong")
        assert wins.code != 0
        assert (await call("context", "add", "here", served.url, "--token", "@token.txt")).code == 0
        kept = json.loads((tmp_path / "config" / "noetl" / "contexts.json").read_text())
        assert kept["contexts"]["here"]["token"] == made.out.strip()
        assert (await call("runs")).code == 0


@pytest.mark.parametrize(
    "given",
    [("db", "check", "--db", "@db.url"), ("runs", "--store", "@db.url"), ("admin", "rebuild", "--store", "@db.url")],
)
def test_a_database_url_is_read_from_a_file(tmp_path: Path, given: tuple[str, ...]) -> None:
    (tmp_path / "db.url").write_text(f"{URL}\n")
    by_option = noetl(*given, cwd=tmp_path)
    by_variable = noetl(*given[:-2], cwd=tmp_path, NOETL_DB_URL_FILE="db.url")
    for ran in (by_option, by_variable):
        assert ran.code == 1
        assert "127.0.0.1" in ran.err
        assert "s3cret" not in ran.err


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for given, said in (
        (("db", "check", "--db", "@none"), "Cannot read the file none of --db"),
        (("runs", "--store", "@none"), "Cannot read the file none of"),
        (("context", "add", "x", "http://h", "--token", "@none"), "Cannot read the file none of --token"),
    ):
        ran = noetl(*given, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))
        assert (ran.code, said in " ".join(ran.err.split())) == (2, True), ran.err
    ran = noetl("runs", cwd=tmp_path, NOETL_TOKEN="x", NOETL_TOKEN_FILE="y")
    assert (ran.code, "both set" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("given", "what", "instead"),
    [
        (
            ("worker", "list", "--server", "http://127.0.0.1:9", "--token", "t0ken"),
            "the token of --token",
            "NOETL_TOKEN",
        ),
        (("runs", "--store", URL), "the password in --server", "NOETL_DB_URL"),
        (("db", "check", "--db", URL), "the password in --db", "NOETL_DB_URL"),
        (("runs", "--server", "http://ada:pw@127.0.0.1:9"), "the password in --server", "NOETL_SERVER_URL"),
        (
            ("credential", "put", "x", "--data", "{}", "--server", "http://127.0.0.1:9"),
            "the value in --data",
            "--data - to read stdin",
        ),
        (("run", "x.yaml", "--set", "db.password=x"), "`password` in --set", "--payload @FILE"),
        (("run", "x.yaml", "--payload", '{"db": {"api_key": "x"}}'), "`api_key` in --payload", "--payload @FILE"),
    ],
)
def test_a_secret_on_the_command_line_gets_a_warning(
    tmp_path: Path, given: tuple[str, ...], what: str, instead: str
) -> None:
    (tmp_path / "x.yaml").write_text(PLAYBOOK)
    ran = noetl(*given, cwd=tmp_path)
    (warning,) = [line for line in ran.err.splitlines() if line.startswith("noetl: warning: other users")]
    assert f"can see {what} while the command runs. " in warning
    assert instead in warning


@pytest.mark.parametrize(
    ("given", "environment"),
    [
        (("worker", "list", "--server", "http://127.0.0.1:9", "--token", "@token"), {}),
        (("worker", "list", "--server", "http://127.0.0.1:9"), {"NOETL_TOKEN": "t0ken"}),
        (("runs",), {"NOETL_DB_URL": URL}),
        (("runs", "--store", "postgresql://noetl@127.0.0.1:9/noetl"), {}),
        (("credential", "put", "x", "--data", "@token", "--server", "http://127.0.0.1:9"), {}),
        (("run", "x.yaml", "--set", "n=1", "--payload", "@token"), {}),
    ],
)
def test_a_secret_elsewhere_gets_none(tmp_path: Path, given: tuple[str, ...], environment: dict[str, str]) -> None:
    (tmp_path / "x.yaml").write_text(PLAYBOOK)
    (tmp_path / "token").write_text('{"password": "x"}')
    assert "other users" not in noetl(*given, cwd=tmp_path, stdin=None, **environment).err
