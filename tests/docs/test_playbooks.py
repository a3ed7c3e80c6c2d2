"""Checks every playbook that people copy: those on the pages and those in examples/, with the real command.

A fenced block is a whole playbook when it has `apiVersion`. One marked `broken`, and those in examples/broken/, must be
refused; all others must give no diagnostic at all, not even a hint.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.docs.pages import ROOT, blocks, name, pages

PLAYBOOKS = [
    block
    for page in pages()
    for block in blocks(name(page), page.read_text(encoding="utf-8"))
    if block.info[:1] in {("yaml",), ("json",)} and "apiVersion" in block.text
]
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml"))


def diagnostics(files: Iterable[Path]) -> dict[Path, list[str]]:
    """Severity, place and message of everything that is found in each file."""
    found: dict[Path, list[str]] = {file: [] for file in files}
    command = [sys.executable, "-m", "noetl", "validate", "--format", "json", *map(str, found)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stderr == ""
    for one in json.loads(done.stdout)["diagnostics"]:
        found[Path(one["file"])].append(f"{one['severity']} {one['line']}:{one['column']} {one['message']}")
    return found


def written(folder: Path, *, broken: bool) -> list[Path]:
    """Files with the playbooks of all pages, named after the place they stand in."""
    files = []
    for block in PLAYBOOKS:
        if ("broken" in block.info) == broken:
            file = folder / f"{block.where.replace('/', '.').replace(':', '.')}.{block.info[0]}"
            file.write_text(block.text, encoding="utf-8")
            files.append(file)
    return files


def test_playbooks_on_pages_are_clean(tmp_path: Path) -> None:
    found = diagnostics(written(tmp_path, broken=False))
    assert len(found) >= 5
    assert {file.name: told for file, told in found.items() if told} == {}


def test_playbooks_marked_as_broken_are_refused(tmp_path: Path) -> None:
    found = diagnostics(written(tmp_path, broken=True))
    assert found
    assert [file.name for file, told in found.items() if not any(line.startswith("error") for line in told)] == []


def test_examples_are_clean() -> None:
    found = diagnostics(example for example in EXAMPLES if example.parent.name != "broken")
    assert ROOT / "examples" / "hello.yaml" in found
    assert {name(file): told for file, told in found.items() if told} == {}


def test_broken_examples_are_refused() -> None:
    found = diagnostics(example for example in EXAMPLES if example.parent.name == "broken")
    assert found
    assert [name(file) for file, told in found.items() if not any(line.startswith("error") for line in told)] == []
