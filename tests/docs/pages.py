"""The project's Markdown pages: fenced blocks, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)(?P=ticks)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: page, first line, words behind the opening fence, and text."""

    page: str
    line: int
    info: tuple[str, ...]
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return every Markdown page of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: str, text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        body = "".join(line[indent:] for line in match["body"].splitlines(keepends=True))
        yield Block(page, text.count("\n", 0, match.start()) + 2, tuple(match["info"].split()), body)


def prose(text: str) -> str:
    """Return the page without its fenced blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: its headings as Markdown hosts spell them."""
    return {
        re.sub(r"[^\w\- ]", "", match["text"].lower()).replace(" ", "-")
        for match in HEADING.finditer(FENCE.sub("", text))
    }


def links(text: str) -> Iterator[str]:
    """Yield the targets of relative links."""
    for match in LINK.finditer(prose(text)):
        if "://" not in match["target"]:
            yield match["target"]


def broken_links(page: Path, text: str) -> Iterator[str]:
    for target in links(text):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{page}: no such file: {target}"
        elif anchor and anchor not in anchors(text if file == page else file.read_text(encoding="utf-8")):
            yield f"{page}: no such heading: {target}"
