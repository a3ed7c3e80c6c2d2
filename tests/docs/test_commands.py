"""Run the `console` blocks of every page in order and compare their output.

A block ```` ```yaml file=NAME ```` on the same page is written to that file first, so a reader who follows the page sees the same.
A line `…` in the output stands for any lines, and `…` within a line for any text there, such as an id or a time.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, name, pages
from tests.preloaded import preloaded

PATIENCE_S = 120
SHOWN = {name(page): list(blocks(name(page), page.read_text(encoding="utf-8"))) for page in pages()}
WITH_COMMANDS = [page for page, found in SHOWN.items() if any(block.info[:1] == ("console",) for block in found)]


def calls(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block with the output under each."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def run(command: str, folder: Path) -> str:
    """Run a noetl command in a folder, without colours; return its output."""
    program, *arguments = shlex.split(command)
    assert program == "noetl", f"only noetl commands can be shown with their output: {command}"
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "120"}
    with tempfile.TemporaryFile() as printed:
        streams = [0, printed.fileno(), printed.fileno()]
        preloaded().run(arguments, streams, folder=folder, environment=environment, patience_s=PATIENCE_S)
        printed.seek(0)
        return printed.read().decode()


def same(shown: str, printed: str) -> bool:
    """Whether the printed text equals the shown one, up to surrounding blanks."""
    lines = [
        ".*" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", r"[^\n]*")
        for line in shown.strip().splitlines()
    ]
    text = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    return re.fullmatch("\n".join(lines), text, re.DOTALL) is not None


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in SHOWN[page]:
        for word in block.info:
            if word.startswith("file="):
                (tmp_path / word.removeprefix("file=")).write_text(block.text, encoding="utf-8")
        if block.info[:1] == ("console",):
            for command, shown in calls(block):
                printed = run(command, tmp_path)
                assert same(shown, printed), f"{block.where}: {command}\n{printed}"


def test_pages_show_commands() -> None:
    assert WITH_COMMANDS


def test_a_difference_is_seen() -> None:
    assert same("a\n…\nd\n", "a  \nb\nc\nd\n\n")
    assert not same("a\n…\nd\n", "a\nb\n")
    assert not same("a.c", "abc")
    assert same("run … in x\nb", "run 42 in x\nb")
    assert not same("run … in x", "run 42\nin x")


def test_commands_and_outputs_are_told_apart() -> None:
    block = Block("p.md", 1, ("console",), "$ noetl a\none\ntwo\n$ noetl b\n")
    assert list(calls(block)) == [("noetl a", "one\ntwo\n"), ("noetl b", "")]
