"""Tokenize template code, and determine what is being typed at the cursor.

Works on incomplete templates; `noetl.expr` analyses complete ones. Tested in tests/unit/authoring/language/test_template_tokens.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

TokenKind = Literal["begin", "end", "name", "text", "open", "number", "mark"]
Wanted = Literal["name", "key", "filter", "test", "text", "statement", "nothing"]

_BEGIN: Final = re.compile(r"\{[{%#][-+]?")
_RAW: Final = re.compile(r"\{%[-+]?\s*raw\s*[-+]?%\}")
_END_RAW: Final = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_TOKEN: Final = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<open>['\"].*)|(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)"
    r"|(?P<end>[-+]?[%}]\})|(?P<space>\s+)|(?P<mark>==|!=|<=|>=|//|\*\*|.)",
    re.DOTALL,
)
_KINDS: Final[dict[str, TokenKind]] = {
    "text": "text", "open": "open", "name": "name", "number": "number", "mark": "mark", "end": "end",
}  # fmt: skip
_OPERATORS: Final = frozenset({"and", "or", "not", "in", "is", "if", "else", "elif", "for", "set"})


class Token(NamedTuple):
    """One token; `text` is as written, quotes included."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def value(self) -> str:
        return self.text[1:-1] if self.kind == "text" else self.text[1:] if self.kind == "open" else self.text


def tokens(source: str) -> tuple[Token, ...]:
    """Return the tokens of all code; text, comments and raw blocks have none."""
    return tuple(_tokens(source))


def _tokens(source: str) -> Iterator[Token]:
    at = 0
    while found := _BEGIN.search(source, at):
        at = found.end()
        raw = _RAW.match(source, found.start())
        if found[0].startswith("{#"):
            closed = source.find("#}", at)
            at = closed + 2 if closed >= 0 else len(source)
        elif raw:
            closing = _END_RAW.search(source, raw.end())
            at = closing.end() if closing else len(source)
        else:
            yield Token("begin", found[0], found.start())
            for token in _code(source, at, "%}" if found[0][1] == "%" else "}}"):
                yield token
                at = token.end


def _code(source: str, at: int, closing: str) -> Iterator[Token]:
    braces = 0
    while found := _TOKEN.match(source, at):
        kind, text = _KINDS.get(found.lastgroup or ""), found[0]
        if kind == "end" and (not text.endswith(closing) or (braces and closing == "}}")):
            kind, text = "mark", text[0]
        if kind == "mark":
            braces += (text == "{") - (text == "}")
        if kind is not None:
            yield Token(kind, text, at)
        if kind == "end":
            return
        at += len(text)


@dataclass(frozen=True, slots=True)
class Writing:
    """What is being typed: the sort of word, its context, and its prefix."""

    wanted: Wanted
    prefix: str = ""
    path: tuple[str, ...] = ()  # names before the last dot, or the path a string is compared with
    function: str = ""  # function whose argument is a string


def writing(source: str, cursor: int) -> Writing | None:
    """Determine what is being typed before the cursor; None outside of code."""
    found = tokens(source[:cursor])
    begins = [number for number, token in enumerate(found) if token.kind in ("begin", "end")]
    if not begins or found[begins[-1]].kind == "end":
        return None
    code = found[begins[-1] + 1 :]
    statement = found[begins[-1]].text.startswith("{%")
    if code and code[-1].kind == "open":
        return _text(code)
    prefix = ""
    if code and code[-1].end == cursor and code[-1].kind == "number":
        return Writing("nothing", code[-1].text)
    if code and code[-1].end == cursor and code[-1].kind == "name":
        prefix, code = code[-1].text, code[:-1]
    if not code:
        return Writing("statement" if statement else "name", prefix)
    return _after(code, prefix)


def _after(code: Sequence[Token], prefix: str) -> Writing:
    last = code[-1]
    if last.text == ".":
        path = path_before(code, len(code) - 2)
        return Writing("key", prefix, path) if path else Writing("nothing", prefix)
    if last.text == "|":
        return Writing("filter", prefix)
    words = [token.text for token in code[-2:]]
    if words[-1] == "is" or words == ["is", "not"]:
        return Writing("test", prefix)
    return Writing("name", prefix)


def _text(code: Sequence[Token]) -> Writing:
    prefix, before = code[-1].value, code[:-1]
    last = before[-1].text if before else ""
    if last == "[" and (path := path_before(before, len(before) - 2)):
        return Writing("key", prefix, path)
    if last == "(" and len(before) > 1 and before[-2].kind == "name":
        return Writing("text", prefix, function=before[-2].text)
    return Writing("text", prefix, _compared_path(before))


def _compared_path(code: Sequence[Token]) -> tuple[str, ...]:
    at = len(code) - 1
    while at >= 0 and (code[at].kind == "text" or code[at].text in ("[", "(", ",")):
        at -= 1
    if at < 0 or code[at].text not in ("==", "!=", "in"):
        return ()
    at -= 2 if code[at].text == "in" and at > 0 and code[at - 1].text == "not" else 1
    return path_before(code, at)


def path_before(code: Sequence[Token], last: int) -> tuple[str, ...]:
    """Return the path that ends with a token: `a.b[0]` is ('a', 'b', '0')."""
    keys: list[str] = []
    at = last
    while at >= 0:
        token = code[at]
        if token.text == "]" and at > 1 and code[at - 2].text == "[" and code[at - 1].kind in ("text", "number"):
            keys.append(code[at - 1].value)
            at -= 3
        elif token.kind == "name" and token.text not in _OPERATORS:
            keys.append(token.text)
            if at == 0 or code[at - 1].text != ".":
                return tuple(reversed(keys))
            at -= 2
        else:
            return ()
    return ()
