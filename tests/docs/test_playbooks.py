"""Checks every playbook that people copy: those on the pages and those in examples/, with the real command.

A fenced block is a whole playbook when it has `apiVersion`; one marked `broken` must be refused.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, name, pages

PLAYBOOKS = [
    block
    for page in pages()
    for block in blocks(name(page), page.read_text(encoding="utf-8"))
    if block.info[:1] in {("yaml",), ("json",)} and "apiVersion" in block.text
]
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml"))


def validate(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "noetl", "validate", "--format", "github", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize("block", PLAYBOOKS, ids=lambda block: block.where)
def test_playbooks_on_pages(block: Block, tmp_path: Path) -> None:
    file = tmp_path / f"playbook.{block.info[0]}"
    file.write_text(block.text, encoding="utf-8")
    done = validate(file)
    if "broken" in block.info:
        assert done.returncode == 1, f"{block.where} is marked as broken and passes"
        assert "::error" in done.stdout
    else:
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), block.where


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples(example: Path) -> None:
    done = validate(example)
    if example.parent.name == "broken":
        assert done.returncode == 1
        assert "::error" in done.stdout
    else:
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_there_are_playbooks_to_check() -> None:
    assert len(PLAYBOOKS) >= 5
    assert {"hello.yaml"} <= {example.name for example in EXAMPLES}
