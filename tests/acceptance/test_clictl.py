"""`clictl`: installed beside `noetl`, and the forms of its commands."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from noetl.cli.clictl import modern
from tests.acceptance.run import noetl
from tests.server.api.test_dlq import loop

ROOT = Path(__file__).parents[2]


def clictl(*arguments: str, cwd: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "noetl.cli.clictl", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, timeout=120, check=False)
    return done.returncode, done.stdout.decode()


def test_it_is_installed_with_noetl() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts["clictl"] == "noetl.cli.clictl:main"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("exec start demo/hello --trace", "exec demo/hello --trace"),
        ("exec status --id 4711", "status 4711"),
        ("exec status --id=4711 --json", "status 4711 --json"),
        ("dlq list --status pending --limit 100", "dlq list --status pending --limit 100"),
        ("dlq replay 1-a --patch spec.url=https://new", "dlq replay 1-a --patch spec.url=https://new"),
        ("worker drain --pool default", "worker drain --pool default"),
        ("exec demo/hello", "exec demo/hello"),
    ],
)
def test_older_forms_are_read(given: str, meant: str) -> None:
    assert modern(given.split()) == meant.split()


def test_the_runbook_of_dead_letters(tmp_path: Path) -> None:
    (tmp_path / "play.yaml").write_text(loop(8), encoding="utf-8")
    assert noetl("run", "play.yaml", cwd=tmp_path).code == 5
    code, out = clictl("dlq", "list", "--status", "pending", "--limit", "10", cwd=tmp_path)
    name = out.split()[0]
    assert code == 0
    assert clictl("dlq", "show", name, cwd=tmp_path)[0] == 0
    assert clictl("dlq", "replay", name, "--patch", "input.strict=false", cwd=tmp_path) == (
        0,
        "1 dead letter replayed; 1 repaired, 0 failed again\n",
    )
    code, out = clictl("exec", "status", "--id", name.partition("-")[0], cwd=tmp_path)
    assert code == 0
    assert "completed" in out
    assert clictl("admin", "prune", "--before", "2100-01-01", cwd=tmp_path) == (
        0,
        "removed 1 executions and 0 stored results\n",
    )
