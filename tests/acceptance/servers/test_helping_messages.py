"""Messages about what a server lacks print the command that helps; here it is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.run import Ran, noetl
from tests.databases import server_address
from tests.server.serving import process


@pytest.fixture
def missing(request: pytest.FixtureRequest) -> str:
    """Return the address of a database that does not exist."""
    return f"{server_address().rpartition('/')[0]}/{request.node.name}"


def command_in(message: str) -> str:
    """Return the last command that a message prints in backticks."""
    return str(re.findall(r"`([^`]+)`", message)[-1])


def shell(command: str, folder: Path, **environment: str) -> Ran:
    """Run a command as printed; `noetl` is the one under test."""
    script = f'noetl() {{ "{sys.executable}" -m noetl "$@"; }}; {command}'
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "HOME": str(folder), **environment},
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("library", "arguments"),
    [
        ("asyncpg", ("db", "init", "--db", "postgresql://127.0.0.1:1/x")),
        ("asyncpg", ("serve", "--port", "0", "--db", "postgresql://127.0.0.1:1/x")),
        ("asyncpg", ("runs", "--db", "postgresql://127.0.0.1:1/x")),
        ("pygls", ("lsp",)),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    tmp_path: Path, library: str, arguments: tuple[str, ...]
) -> None:
    script = tmp_path / "without.py"
    script.write_text(
        f"import sys\nsys.modules[{library!r}] = None\nfrom noetl.cli import main\nsys.argv = ['noetl', *{arguments}]\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        stdin=subprocess.DEVNULL, env=os.environ,
    )  # fmt: skip
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert re.search(rf"pip install .*'{library}[<>]", command_in(done.stderr))
    assert sys.executable in command_in(done.stderr)


def test_a_missing_database_is_created_by_the_printed_command(tmp_path: Path, missing: str) -> None:
    refused = noetl("serve", "--port", "0", "--db", missing, cwd=tmp_path)
    assert (refused.code, len(refused.err.splitlines())) == (1, 1), refused.err
    assert command_in(refused.err) == f"noetl db init --db {missing}"
    made = shell(command_in(refused.err), tmp_path)
    assert (made.code, made.out) == (0, "database created\n"), made.err
    with process(tmp_path, "serve", "--db", missing):
        pass


def test_an_address_from_the_environment_is_printed_without_its_password(tmp_path: Path, missing: str) -> None:
    secret = missing.replace("noetl@", "noetl:hush@")
    refused = noetl("serve", "--port", "0", cwd=tmp_path, NOETL_DB_URL=secret)
    assert command_in(refused.err) == 'noetl db init --db "$NOETL_DB_URL"'
    given = noetl("serve", "--port", "0", "--db", secret, cwd=tmp_path)
    assert command_in(given.err) == f"noetl db init --db {missing.replace('noetl@', 'noetl:PASSWORD@')}"
    assert "hush" not in refused.err + given.err
    assert shell(command_in(refused.err), tmp_path, NOETL_DB_URL=secret).code == 0


def test_the_first_token_is_created_by_the_printed_command(tmp_path: Path, missing: str) -> None:
    arguments = ("serve", "--auth", "token", "--db", missing)
    assert noetl("db", "init", "--db", missing, cwd=tmp_path).code == 0
    refused = noetl(*arguments, "--port", "0", cwd=tmp_path)
    assert refused.code == 2
    assert command_in(refused.err) == f"noetl token create --role admin --name me --db {missing}"
    made = shell(command_in(refused.err), tmp_path)
    assert made.out.startswith("noetl_"), made.err
    with process(tmp_path, *arguments):
        pass


def test_the_first_token_of_a_file_is_created_by_the_printed_command(tmp_path: Path) -> None:
    store = str(tmp_path / "my store.db")
    refused = noetl("serve", "--auth", "token", "--store", store, "--port", "0", cwd=tmp_path)
    assert command_in(refused.err) == f"noetl token create --role admin --name me --store '{store}'"
    assert shell(command_in(refused.err), tmp_path).code == 0
    with process(tmp_path, "serve", "--auth", "token", "--store", store):
        pass


def test_a_server_on_postgresql_gets_its_key_by_the_printed_command(tmp_path: Path, missing: str) -> None:
    put = ("credential", "put", "crm", "--data", '{"token": "t"}')
    assert noetl("db", "init", "--db", missing, cwd=tmp_path).code == 0
    with process(tmp_path, "serve", "--db", missing) as (url, server):
        assert 'export NOETL_ENCRYPTION_KEY="$(noetl credential key)"' in server.stderr.readline()
        refused = noetl(*put, "--server", url, cwd=tmp_path)
        assert refused.code == 1
    assert command_in(refused.err) == 'export NOETL_ENCRYPTION_KEY="$(noetl credential key)"'
    key = shell(f'{command_in(refused.err)}; echo "$NOETL_ENCRYPTION_KEY"', tmp_path).out.strip()
    with process(tmp_path, "serve", "--db", missing, environment={"NOETL_ENCRYPTION_KEY": key}) as (url, _server):
        assert noetl(*put, "--server", url, cwd=tmp_path).out == "crm version 1\n"


def test_an_invalid_key_is_refused_with_the_command_that_prints_one(tmp_path: Path) -> None:
    refused = noetl("serve", "--port", "0", cwd=tmp_path, NOETL_ENCRYPTION_KEY="short")
    assert (refused.code, command_in(refused.err)) == (2, "noetl credential key")
