"""Keeps the examples presentable: each says what it is, is listed on their page, and is laid out as `noetl fmt` does it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from noetl.dsl.normalize import normalize
from noetl.dsl.parse import parse
from tests.docs.pages import ROOT, links, name

FOLDER = ROOT / "examples"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))


def test_all_are_formatted() -> None:
    command = [sys.executable, "-m", "noetl", "fmt", "--check", *map(str, EXAMPLES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_the_path_is_the_place_of_the_file(example: Path) -> None:
    playbook = normalize(parse(example.read_bytes(), example.name))
    assert (playbook.name, playbook.path) == (example.stem, f"examples/{example.stem}")


@pytest.mark.parametrize("example", [path for path in EXAMPLES if path.stem != "hello"], ids=name)
def test_the_first_lines_say_what_it_is_and_its_metadata_what_it_does(example: Path) -> None:
    assert example.read_text(encoding="utf-8").startswith("# ")
    assert "description" in normalize(parse(example.read_bytes(), example.name)).metadata


def test_the_page_lists_them_all() -> None:
    listed = set(links((FOLDER / "README.md").read_text(encoding="utf-8")))
    assert {path.name for path in EXAMPLES} <= listed
