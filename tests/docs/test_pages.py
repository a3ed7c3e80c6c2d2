"""Check hand-written pages: links resolve, and the README is one screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.acceptance.run import noetl
from tests.docs.pages import FENCE, ROOT, anchors, blocks, broken_links, links, pages

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README.partition("\n## ")[0]


def test_every_relative_link_leads_somewhere() -> None:
    assert [line for page in pages() for line in broken_links(page, page.read_text(encoding="utf-8"))] == []


def test_every_page_of_the_docs_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    reached, todo = set(), [index]
    while todo:
        page = todo.pop()
        if page in reached or page.suffix != ".md" or not page.is_relative_to(ROOT / "docs"):
            continue
        reached.add(page)
        todo += [(page.parent / link.partition("#")[0]).resolve() for link in links(page.read_text(encoding="utf-8"))]
    assert set((ROOT / "docs").rglob("*.md")) - reached == set()


def commands(text: str) -> list[str]:
    """Return the lines of the shell blocks, without comments."""
    shell = [block for block in blocks("README.md", text) if block.info[:1] in {("sh",), ("bash",), ("console",)}]
    lines = [line.partition("#")[0].strip().removeprefix("$ ") for block in shell for line in block.text.splitlines()]
    return [line for line in lines if line]


def test_the_first_screen_has_two_commands() -> None:
    assert len(FIRST_SCREEN.splitlines()) <= 60
    assert commands(FIRST_SCREEN) == ["make demo", "make test"]


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test"} <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_the_readme_is_one_screen_with_a_playbook_of_ten_lines_that_runs(tmp_path: Path) -> None:
    assert len(README.splitlines()) <= 60
    (playbook,) = (block.text for block in blocks("README.md", README) if "apiVersion" in block.text)
    assert len([line for line in playbook.splitlines() if line]) == 10
    (tmp_path / "squares.yaml").write_text(playbook, encoding="utf-8")
    done = noetl("run", "squares.yaml", cwd=tmp_path)
    assert done.code == 0, done.err
    assert yaml.safe_load(done.out) == {"message": "The squares add up to 55."}


def test_the_readme_has_a_picture() -> None:
    pictures = [link for link in links(FIRST_SCREEN) if link.endswith(".svg")]
    assert len(pictures) == 1


def paths_named(text: str) -> set[str]:
    """Return the files and folders in code spans that have no placeholder."""
    return set(re.findall(r"`([\w./-]+(?:/|\.py))`", FENCE.sub("", text)))


def test_every_path_that_the_architecture_names_exists() -> None:
    found = [f"/{path.relative_to(ROOT).as_posix()}{'/' * path.is_dir()}" for path in project_paths()]
    named = paths_named((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [path for path in sorted(named) if not any(one.endswith(f"/{path}") for one in found)] == []


def project_paths() -> Iterator[Path]:
    for folder in ("src", "tests", "docs", "examples", "bench"):
        yield ROOT / folder
        yield from (ROOT / folder).rglob("*")


def test_paths_are_found_in_code_spans_only() -> None:
    assert paths_named("`a/b.py`, `c/`, `d` and e/ but not `f/<g>.py`\n```\n`h.py`\n```\n") == {"a/b.py", "c/"}


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "# One thing\n[a](other.md) [b](#one-thing) [c](#another) [d](page.md#one-thing) `[e](code.md)`\n"
    page.write_text(text, encoding="utf-8")
    assert list(broken_links(page, text)) == [f"{page}: no such file: other.md", f"{page}: no such heading: #another"]


def test_anchors_are_spelled_as_markdown_hosts_do() -> None:
    assert anchors("## What `noetl fmt` does: a list\n```sh\n# no heading\n```\n") == {"what-noetl-fmt-does-a-list"}


def test_fenced_blocks_are_read_with_their_place_and_indentation() -> None:
    text = "text\n\n1. item\n   ```yaml broken\n   a: 1\n     b: 2\n   ```\n"
    (block,) = blocks("p.md", text)
    assert (block.where, block.info, block.text) == ("p.md:5", ("yaml", "broken"), "a: 1\n  b: 2\n")
