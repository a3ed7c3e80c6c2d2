"""The command line as a whole: help, version, unknown commands, start-up cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from noetl import __version__
from noetl.cli.app import COMMANDS
from tests.acceptance.run import noetl


def test_help_lists_every_command_with_its_line() -> None:
    ran = noetl("--help")
    assert ran.code == 0
    for name, (_, summary) in COMMANDS.items():
        assert name in ran.out
        assert summary.split()[0] in ran.out


def test_the_version_is_the_package_s() -> None:
    assert noetl("--version").out == f"noetl {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    ran = noetl(name, "--help")
    assert ran.code == 0, ran.err
    assert f"noetl {name}" in ran.out


def test_an_unknown_command_names_the_nearest() -> None:
    ran = noetl("vlidate")
    assert ran.code == 2
    assert "vlidate" in ran.err
    assert "validate" in ran.err
    assert "Traceback" not in ran.err


def test_help_imports_no_checker_and_validate_no_heavy_library() -> None:
    loaded = _modules("--help")
    assert not {name for name in loaded if name.startswith(("noetl.dsl", "noetl.expr", "noetl.tools"))}
    assert not loaded & {"yaml", "jinja2", "msgspec", "rich"}
    checking = _modules("validate", "examples/hello.yaml")
    assert "noetl.dsl.validate" in checking
    assert not checking & {"pydantic", "rich", "pygls", "lsprotocol", "asyncio", "jsonschema", "httpx"}


def _modules(*arguments: str) -> set[str]:
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('\\n'.join(sorted(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['noetl', *{arguments!r}]\n"
        "from noetl.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())
