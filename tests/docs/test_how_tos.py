"""How-tos, followed as printed on an empty machine with an empty PostgreSQL."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import psycopg
import pytest

from tests.docs.pages import ROOT, blocks, name, pages
from tests.docs.reader import Reader, commands, reader
from tests.services import free_port, postgres

HOW_TO = "docs/how-to"
FROM_INDEX = re.compile(r"pip install [^\n`]*?(?<=[ '\"])noetl(?:\[[\w,]*\])?(?![\w./\[-])(?! @ )")


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def team(tmp_path: Path, port: int) -> Iterator[Reader]:
    """Yield a reader who has an empty PostgreSQL and a free port."""
    with postgres() as address:
        replaced = {
            "postgresql://noetl:secret@db.example/noetl": f"{address.rpartition('/')[0]}/noetl",
            "http://noetl.example:8082": f"http://127.0.0.1:{port}",
            "http://127.0.0.1:8082": f"http://127.0.0.1:{port}",
            "2026-01-01": "2999-01-01",  # what was run a moment ago is old then
        }
        with reader(tmp_path, replaced, NOETL_PORT=str(port)) as found:
            yield found


def test_run_a_server(team: Reader) -> None:
    if shutil.which("curl") is None:
        pytest.skip("this machine has no curl")
    team.read(f"{HOW_TO}/run-a-server.md")


def test_work_with_a_server(team: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"{HOW_TO}/work-with-a-server.md"
    team.read(page)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", team.variables["HOME"])  # the programs are the reader's, too
    programs = [block.text for block in blocks(page, (ROOT / page).read_text()) if block.info == ("python",)]
    assert len(programs) == 2
    for program in programs:
        scope: dict[str, object] = {}
        begin = "\nimport asyncio\nasyncio.run(main())" if "async def main" in program else ""
        exec(team.replace(program) + begin, scope)


def test_keep_executions_in_postgresql(team: Reader) -> None:
    page = f"{HOW_TO}/keep-executions-in-postgresql.md"
    team.read(page)
    queries = [block for block in blocks(page, (ROOT / page).read_text()) if block.info == ("sql",)]
    assert len(queries) == 2
    with psycopg.connect(team.variables["NOETL_DB_URL"]) as connection:
        for query in queries:
            connection.execute(query.text.encode())


def test_editor_setup(tmp_path: Path) -> None:
    page = f"{HOW_TO}/editor-setup.md"
    with reader(tmp_path, {}) as alone:
        alone.read(page)
        schema = json.loads((alone.folder / "playbook.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)


def test_install(tmp_path: Path) -> None:
    """Pip builds with this environment's libraries: nothing is downloaded."""
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    offline["PIP_NO_COMPILE"] = "1"
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    with reader(tmp_path, {"https://git.example/noetl.git": f"file://{ROOT}"}, **offline) as alone:
        alone.variables.pop("PYTHONPATH", None)
        (alone.folder / "noetl").symlink_to(ROOT)
        page = f"{HOW_TO}/install.md"
        for block in blocks(page, (ROOT / page).read_text()):
            alone.follow(block)
            if "-m venv" in block.text:
                (place,) = (alone.folder / ".venv").glob("lib/python*/site-packages")
                (place / "libraries.pth").write_text(libraries)


def test_nothing_is_installed_from_an_index() -> None:
    texts = [*pages(), *(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").iterdir()]
    found = {name(file): FROM_INDEX.findall(file.read_text(encoding="utf-8")) for file in texts if file.is_file()}
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize("line", ["pip install noetl", "pip install -U 'noetl[lsp]'", 'pip install "noetl[a,b]==1"'])
def test_an_install_from_an_index_is_seen(line: str) -> None:
    assert FROM_INDEX.search(f"run {line} now")


@pytest.mark.parametrize("line", ["./noetl", "'./noetl[lsp]'", "git+https://x/noetl.git", "'noetl[a] @ git+https://x'"])
def test_other_installs_are_allowed(line: str) -> None:
    assert not FROM_INDEX.search(f"pip install {line}")


def test_commands_are_told_apart() -> None:
    assert list(commands("a \\\n  b\n# c\n\nd # e\n")) == ["a \\\n  b", "d # e"]
