"""Turns template text into Jinja2's tree, with exact character offsets in place of line numbers.

Jinja2's tokens know only their line. Its raw tokens are the source itself, cut into pieces, so each is found again in
the text, and every token, node and syntax error then carries the offset where it stands. Texts that would exhaust the
parser's recursion are refused by their tokens, before they are parsed. Does not look at what names, filters or
statements mean. Tested in tests/unit/expr/test_parser.py and test_syntax_errors.py.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from jinja2 import Environment, nodes
from jinja2 import TemplateSyntaxError as JinjaSyntaxError
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

from noetl.expr.errors import TemplateSyntaxError
from noetl.expr.syntax import Piece, Trouble, explain

SOURCE_LIMIT: Final = 262_144
# Frames of Python's stack that the parser needs, measured per construct. The sum leaves room for whoever called us.
_FRAMES: Final = 520
_BRACKET_FRAMES: Final = 15
_BLOCK_FRAMES: Final = 4

_ENVIRONMENT: Final = Environment()  # only its lexer's settings are used: Jinja2 renders nothing here
_LEXER: Final = _ENVIRONMENT.lexer
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_BEFORE_PREFIX: Final = frozenset({"(", "[", "{", ",", ":", "-", "+", "not", "and", "or", "if", "else", "in"})
_SMALLER: Final = "break it up into smaller parts"
_SPACE: Final = re.compile(r"\s*")
_IGNORED: Final = frozenset({"whitespace", "comment_begin", "comment", "comment_end"})
_MARKS: Final = re.compile(r"\{[{%#]")
_RETURNS: Final = re.compile(r"\r\n?")
# Statements that exist only with extensions: parsed as such, so that they are reported as statements and not as noise.
_EXTENSIONS: Final = ("do", "break", "continue", "trans", "debug")


def has_template(source: str) -> bool:
    """Whether `source` has any mark of a template: `{{`, `{%` or `{#`."""
    return _MARKS.search(source) is not None


def parse(source: str) -> nodes.Template:
    """The tree of a template. Raises TemplateSyntaxError with an offset, a message and, where possible, a fix."""
    if len(source) > SOURCE_LIMIT:
        raise TemplateSyntaxError(
            f"the template is {len(source):,} characters long; the limit is {SOURCE_LIMIT:,}",
            0,
            "move large texts out of the template",
        )
    returns = [match.start() for match in _RETURNS.finditer(source) if match.end() - match.start() == 2]
    text = _RETURNS.sub("\n", source) if "\r" in source else source
    pieces: list[Piece] = []
    try:
        _cut(text, pieces)
        _check_depth(pieces)
        return _Offsets(pieces, text).parse()
    except JinjaSyntaxError as error:
        offset = error.lineno if pieces and pieces[-1].type == "end" else _end(pieces)
        raise _original(explain(Trouble(text, pieces, offset, error.message or "")), returns) from None
    except TemplateSyntaxError as error:
        raise _original(error, returns) from None
    except (RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        message = "the template is nested too deeply" if deep else "a number in the template has too many digits"
        raise TemplateSyntaxError(message, _end(pieces), _SMALLER) from None


def _original(error: TemplateSyntaxError, returns: list[int]) -> TemplateSyntaxError:
    """Undo the shift of offsets that came from reading `\\r\\n` as one character."""
    if returns and error.offset is not None:
        error.offset = original_offset(error.offset, returns)
    return error


def original_offset(offset: int, returns: list[int]) -> int:
    """The offset in the source of an offset in its text, given where the source has `\\r\\n`."""
    shifted = [position - index for index, position in enumerate(returns)]
    return offset + bisect_right(shifted, offset - 1)


def _end(pieces: list[Piece]) -> int:
    """Where the last piece ends: the lexer fails at the first character that it cannot take."""
    return pieces[-1].offset + len(pieces[-1].text) if pieces else 0


def _cut(text: str, pieces: list[Piece]) -> None:
    """Fill `pieces`, as far as the lexer gets; a last piece of type `end` says that it got to the end."""
    position = 0
    for _, type_, piece in _LEXER.tokeniter(text, None):
        # Only white space that a `-` strips can lie between two raw tokens.
        position = text.find(piece, position)
        pieces.append(Piece(position, type_, piece))
        position += len(piece)
    pieces.append(Piece(len(text), "end", ""))


def _check_depth(pieces: list[Piece]) -> None:
    """Refuse what would exhaust the stack, at the same depth whoever calls."""
    brackets = blocks = prefixes = choices = 0
    previous = Piece(0, "", "")
    for piece in pieces:
        if piece.type == "whitespace":
            continue
        prefix = piece.text in {"-", "+", "not"} and (
            previous.type.endswith("_begin") or previous.text in _BEFORE_PREFIX
        )
        prefixes = prefixes + 1 if prefix else 0
        if piece.type == "operator":
            brackets += (piece.text in _OPENING) - (piece.text in _CLOSING)
        elif piece.type == "name" and previous.type == "block_begin":
            blocks += (piece.text in {"if", "for", "set"}) - piece.text.startswith("end")
        elif piece.type == "name":
            choices += piece.text == "else"
        elif piece.type in {"variable_end", "block_end"}:
            choices = 0
        if brackets * _BRACKET_FRAMES + blocks * _BLOCK_FRAMES + prefixes + choices > _FRAMES:
            raise TemplateSyntaxError("the template is nested too deeply", piece.offset, _SMALLER)
        previous = piece


class _Offsets(Parser):
    """Jinja2's parser over tokens whose line numbers are offsets; lookups point at the key, tests at their name."""

    def __init__(self, pieces: list[Piece], text: str) -> None:
        super().__init__(_ENVIRONMENT, "")
        raw = [piece for piece in pieces if piece.type not in _IGNORED and piece.type != "end"]
        self.stream = TokenStream(_LEXER.wrap(raw), None, None)
        self._text = text
        for tag in _EXTENSIONS:
            self.extensions[tag] = _parse_extension

    def parse_subscript(self, node: nodes.Expr) -> nodes.Getattr | nodes.Getitem:
        """A lookup carries the offset of its key."""
        offset = self.stream.look().lineno
        lookup = super().parse_subscript(node)
        lookup.lineno = offset
        return lookup

    def parse_test(self, node: nodes.Expr) -> nodes.Expr:
        """A test carries the offset of its name."""
        token = self.stream.look()
        test = super().parse_test(node)
        if isinstance(test, nodes.Not):
            space = _SPACE.match(self._text, token.lineno + len("not"))
            test.node.lineno = space.end() if space else token.lineno
        else:
            test.lineno = token.lineno
        return test


def _parse_extension(parser: Parser) -> nodes.Node:
    token: Token = next(parser.stream)
    while parser.stream.current.type not in {"block_end", "eof"}:
        next(parser.stream)
    return nodes.ExprStmt(nodes.Const(token.value, lineno=token.lineno), lineno=token.lineno)
