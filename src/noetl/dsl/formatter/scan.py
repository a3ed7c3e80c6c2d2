"""Find tokens and comments. Tested in tests/unit/dsl/formatter/test_format.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from noetl.dsl.formatter.cst import Comment, Leaf
from noetl.dsl.formatter.scalar_text import content_end, header_comment
from noetl.dsl.formatter.tokens import Token, tokens
from noetl.dsl.reading.compose import BLOCK_STYLES

_GAP_PART: Final = re.compile(r"!<[^>\s]*>|[&!][^\s,\[\]{}]*|#[^\n]*|\?")
_REST_OF_LINE: Final = re.compile(r"[^\n]*")


class UnsupportedError(Exception):
    """The formatter does not support this spelling."""


def leaf_of(token: Token) -> Leaf:
    """Return the scalar or alias of a token."""
    style = "*" if token.kind == "alias" else token.style
    return Leaf(token.content, token.end, style, token.properties, token.value)


class Scan:
    """A scanned text: prologue up to `---`, tokens, comments, epilogue."""

    def __init__(self, text: str) -> None:
        self.text = text
        document, *self.tokens, end = tokens(text)
        self.prologue = self._read_prologue(document)
        self.epilogue = text[end.start :] if end.explicit else ""
        self.content_ends: dict[int, int] = {}  # by offset of the block scalar
        self._header_comments: list[str] = []
        self.comments = list(self._find_comments())

    def comment_texts(self) -> list[str]:
        """Return all comments, sorted."""
        around = [line.strip() for line in (self.prologue + "\n" + self.epilogue).split("\n") if line.strip()]
        return sorted([comment.text for comment in self.comments] + self._header_comments + around)

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def after_empty_line(self, offset: int, content_end: int) -> bool:
        """Return whether the line above is empty and after `content_end`."""
        start = self.line_start(offset)
        above = self.line_start(start - 1) if start else 0
        return content_end <= above < start and not self.text[above:start].strip()

    def _read_prologue(self, document: Token) -> str:
        if not document.explicit:
            return ""
        rest = _REST_OF_LINE.match(self.text, document.end)
        behind = rest[0] if rest else ""
        if behind.strip() and not behind.lstrip().startswith("#"):
            raise UnsupportedError
        return self.text[: document.end + len(behind)]

    def _find_comments(self) -> Iterator[Comment]:
        done, content = len(self.prologue), 0
        for token in self.tokens:
            if token.kind not in ("scalar", "alias"):
                continue
            yield from self._comments_in(done, token.content, content)
            done = max(token.end, done)
            if token.style in BLOCK_STYLES:
                leaf = leaf_of(token)
                content = self.content_ends[token.content] = content_end(self.text, leaf)
                self._header_comments.append(header_comment(self.text, leaf).strip())
        yield from self._comments_in(done, len(self.text) - len(self.epilogue), content)

    def _comments_in(self, start: int, end: int, content: int) -> Iterator[Comment]:
        for part in _GAP_PART.finditer(self.text, start, end):
            if part[0] == "?":
                raise UnsupportedError  # an explicit key with a question mark
            if part[0].startswith("#"):
                yield self._comment(part.start(), part[0].rstrip(), content)

    def _comment(self, start: int, text: str, content: int) -> Comment:
        before = self.text[self.line_start(start) : start]
        gap = before[len(before.rstrip()) :]
        return Comment(start, text, len(before), gap, self.after_empty_line(start, content))
