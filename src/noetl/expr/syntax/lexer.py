"""Tokenize template source; every token carries its character offset.

Same jinja_tokens as Jinja2's lexer, from its own regular expressions in one pass. One difference: a backslash that starts no
escape is kept without a warning, so `'\\d+'` is a pattern. Tested in tests/unit/expr/syntax/test_lexer.py, against Jinja2.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final, NamedTuple

from jinja2 import Environment
from jinja2.lexer import Token, operators


class Lexeme(NamedTuple):
    """Text, a tag delimiter, or a token inside a tag; not white space or comments."""

    offset: int
    type: str
    text: str


class LexError(Exception):
    """The source stops being a template at `offset`."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


ENVIRONMENT: Final = Environment()  # for its lexer rules and its parser; Jinja2 renders nothing here
_MARK: Final = re.compile(r"(?P<raw>\{%(?P<raw_sign>[-+]?)\s*raw\s*(?:-%\}\s*|%\}))|\{(?P<kind>[{%#])(?P<sign>[-+]?)")
_END_RAW: Final = re.compile(r"\{%(?P<sign>[-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\})")
_END_COMMENT: Final = re.compile(r"\+#\}|-#\}\s*|#\}")
_TAGS: Final = {
    "{": ("variable_begin", "variable_end", re.compile(r"-\}\}\s*|\}\}")),
    "%": ("block_begin", "block_end", re.compile(r"\+%\}|-%\}\s*|%\}")),
}


def _token_pattern() -> re.Pattern[str]:
    alternatives = []
    for rule in ENVIRONMENT.lexer.rules["variable_begin"][1:]:
        flags = "".join(
            letter
            for letter, flag in (("i", re.IGNORECASE), ("s", re.DOTALL), ("x", re.VERBOSE))
            if rule.pattern.flags & flag
        )
        alternatives.append(f"(?P<{rule.tokens}>(?{flags}:{rule.pattern.pattern}))")
    return re.compile("|".join(alternatives))


_TOKEN: Final = _token_pattern()
_CLOSES: Final = {"(": ")", "[": "]", "{": "}"}
_LAST_BREAK: Final = re.compile(r"(?:\r\n|\r|\n)\Z")
_BREAK: Final = re.compile(r"\r\n?")
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<sign>[\\'\"abfnrtv\n])|x(?P<hex>[0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})"
    r"|N\{(?P<called>[^}]+)\}|(?P<octal>[0-7]{1,3})|(?P<wrong>[xuUN]))"
)
_SIGNS: Final = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": "",
}  # fmt: skip


def scan(source: str, lexemes: list[Lexeme]) -> None:
    """Append to `lexemes`, up to an error. Ignores one trailing line break."""
    last = _LAST_BREAK.search(source)
    end = last.start() if last is not None else len(source)
    position = 0
    while position < end:
        mark = _MARK.search(source, position, end)
        if mark is None:
            lexemes.append(Lexeme(position, "data", source[position:end]))
            return
        text = source[position : mark.start()]
        if "-" in (mark["sign"], mark["raw_sign"]):
            text = text.rstrip()
        if text:
            lexemes.append(Lexeme(position, "data", text))
        if mark["raw"] is not None:
            position = _raw(source, mark, end, lexemes)
        elif mark["kind"] == "#":
            closing = _END_COMMENT.search(source, mark.end(), end)
            if closing is None:
                raise LexError(mark.end(), "Missing end of comment tag")
            position = closing.end()
        else:
            position = _tag(source, mark, end, lexemes)


def _raw(source: str, mark: re.Match[str], end: int, lexemes: list[Lexeme]) -> int:
    closing = _END_RAW.search(source, mark.end(), end)
    if closing is None:
        raise LexError(mark.end(), "Missing end of raw directive")
    text = source[mark.end() : closing.start()]
    if closing["sign"] == "-":
        text = text.rstrip()
    if text:
        lexemes.append(Lexeme(mark.end(), "data", text))
    return closing.end()


def _tag(source: str, mark: re.Match[str], end: int, lexemes: list[Lexeme]) -> int:
    begin, finish, closing = _TAGS[mark["kind"]]
    lexemes.append(Lexeme(mark.start(), begin, mark.group()))
    position = mark.end()
    wanted: list[str] = []
    while True:
        # A `}}` that closes two maps does not close the tag.
        closed = closing.match(source, position, end) if not wanted else None
        if closed is not None:
            lexemes.append(Lexeme(position, finish, closed.group()))
            return closed.end()
        token = _TOKEN.match(source, position, end)
        if token is None:
            if position >= end:
                return end
            raise LexError(position, f"unexpected char {source[position]!r}")
        kind, text = token.lastgroup or "", token.group()
        if kind == "operator":
            _balance(text, wanted, position)
        if kind != "whitespace":
            lexemes.append(Lexeme(position, kind, text))
        position = token.end()


def _balance(text: str, wanted: list[str], position: int) -> None:
    if text in _CLOSES:
        wanted.append(_CLOSES[text])
    elif text in {")", "]", "}"}:
        if not wanted:
            raise LexError(position, f"unexpected '{text}'")
        expected = wanted.pop()
        if expected != text:
            raise LexError(position, f"unexpected '{text}', expected '{expected}'")


def jinja_tokens(lexemes: list[Lexeme]) -> list[Token]:
    """Convert to tokens of Jinja2's parser, with offsets in place of line numbers."""
    return [
        Token(offset, operators[text], text) if type_ == "operator" else _token(offset, type_, text)
        for offset, type_, text in lexemes
    ]


def _token(offset: int, type_: str, text: str) -> Token:
    value: Any = text
    if type_ == "name":
        if not text.isidentifier():
            raise LexError(offset, "Invalid character in identifier")
    elif type_ == "string":
        value = _unescape(_BREAK.sub("\n", text[1:-1]), offset)
    elif type_ == "data":
        value = _BREAK.sub("\n", text)
    elif type_ == "integer":
        try:
            value = int(text.replace("_", ""), 0)
        except ValueError:
            raise LexError(offset, "the number has too many digits") from None
    elif type_ == "float":
        value = float(text.replace("_", ""))
    return Token(offset, type_, value)


def _unescape(text: str, offset: int) -> str:
    if "\\" not in text:
        return text

    def sign(found: re.Match[str]) -> str:
        if found["sign"] is not None:
            return _SIGNS[found["sign"]]
        if found["octal"] is not None:
            return chr(int(found["octal"], 8))
        code = found["hex"] or found["short"] or found["long"]
        try:
            if code is not None:
                return chr(int(code, 16))
            if found["called"] is not None:
                return unicodedata.lookup(found["called"])
        except (KeyError, ValueError, OverflowError):
            pass
        raise LexError(offset, f"'{found.group()}' is not a valid escape sequence")

    return _ESCAPE.sub(sign, text)
