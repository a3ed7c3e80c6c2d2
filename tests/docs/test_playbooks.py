"""Check every playbook on the pages and in examples/ with the real command.

A fenced block with `apiVersion` is a whole playbook. Those marked `broken`, and those in examples/broken/, must be refused.
All others must produce no diagnostic, not even a hint, and be formatted, unless they are marked `untidy`. Those marked `older`
may have forms of older dialects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.acceptance.run import noetl
from tests.docs.pages import ROOT, Block, blocks, name, pages

PLAYBOOKS = [
    block
    for page in pages()
    for block in blocks(name(page), page.read_text(encoding="utf-8"))
    if block.info[:1] in {("yaml",), ("json",)} and "apiVersion" in block.text
]
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml") if ".test." not in path.name)


def diagnostics(files: Iterable[Path]) -> dict[Path, list[str]]:
    """Return severity, place and message of every finding, per file."""
    found: dict[Path, list[str]] = {file: [] for file in files}
    done = noetl("validate", "--format", "json", *map(str, found), cwd=ROOT)
    assert done.err == ""
    for one in json.loads(done.out)["diagnostics"]:
        found[Path(one["file"])].append(f"{one['severity']} {one['line']}:{one['column']} {one['message']}")
    return found


def written(folder: Path, playbooks: Iterable[Block]) -> list[Path]:
    """Write the playbooks to files named after their place."""
    files = []
    for block in playbooks:
        file = folder / f"{block.where.replace('/', '.').replace(':', '.')}.{block.info[0]}"
        file.write_text(block.text, encoding="utf-8")
        files.append(file)
    return files


def test_playbooks_on_pages_are_clean(tmp_path: Path) -> None:
    sound = (block for block in PLAYBOOKS if not {"broken", "older"}.intersection(block.info))
    found = diagnostics(written(tmp_path, sound))
    assert len(found) >= 5
    assert {file.name: lines for file, lines in found.items() if lines} == {}


def test_playbooks_marked_as_broken_are_refused(tmp_path: Path) -> None:
    found = diagnostics(written(tmp_path, (block for block in PLAYBOOKS if "broken" in block.info)))
    assert found
    assert [file.name for file, lines in found.items() if not any(line.startswith("error") for line in lines)] == []


def test_playbooks_on_pages_are_formatted(tmp_path: Path) -> None:
    files = written(tmp_path, (block for block in PLAYBOOKS if "untidy" not in block.info))
    done = noetl("fmt", "--check", *map(str, files))
    assert (done.code, done.out) == (0, "")


def test_examples_are_clean() -> None:
    found = diagnostics(example for example in EXAMPLES if example.parent.name != "broken")
    assert ROOT / "examples" / "hello.yaml" in found
    assert {name(file): lines for file, lines in found.items() if lines} == {}


def test_broken_examples_are_refused() -> None:
    found = diagnostics(example for example in EXAMPLES if example.parent.name == "broken")
    assert found
    assert [name(file) for file, lines in found.items() if not any(line.startswith("error") for line in lines)] == []
