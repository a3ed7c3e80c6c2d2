"""Turns template text into Jinja2's tree, with exact character offsets in place of line numbers.

The tree comes from Jinja2's own parser. Its tokens know only their line; ours carry the offset there, so every node and
every syntax error knows where it stands. Texts that would exhaust the parser's recursion are refused by their pieces,
before they are parsed. Does not look at what names, filters or statements mean. Tested in
tests/unit/expr/test_parser.py and test_syntax_errors.py.
"""

from __future__ import annotations

import re
from typing import Final

from jinja2 import Environment, nodes
from jinja2 import TemplateSyntaxError as JinjaSyntaxError
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

from noetl.expr.errors import TemplateSyntaxError
from noetl.expr.lexer import LexError, Piece, cut, tokens
from noetl.expr.syntax import Trouble, explain

SOURCE_LIMIT: Final = 262_144
# Frames of Python's stack that the parser needs, measured per construct. The sum leaves room for whoever called us.
_FRAMES: Final = 520
_BRACKET_FRAMES: Final = 15
_BLOCK_FRAMES: Final = 4

_ENVIRONMENT: Final = Environment()  # the parser asks it for extensions; Jinja2 renders nothing here
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_BEFORE_PREFIX: Final = frozenset({"(", "[", "{", ",", ":", "-", "+", "not", "and", "or", "if", "else", "in"})
_SMALLER: Final = "break it up into smaller parts"
_SPACE: Final = re.compile(r"\s*")
_MARKS: Final = re.compile(r"\{[{%#]")
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
    pieces: list[Piece] = []
    try:
        cut(source, pieces)
        _check_depth(pieces)
        return _Offsets(pieces, source).tree()
    except LexError as error:
        raise explain(Trouble(source, pieces, error.offset, error.message)) from None
    except JinjaSyntaxError as error:
        raise explain(Trouble(source, pieces, error.lineno, error.message or "")) from None
    except RecursionError:
        raise TemplateSyntaxError("the template is nested too deeply", 0, _SMALLER) from None


def _check_depth(pieces: list[Piece]) -> None:
    """Refuse what would exhaust the stack, at the same depth whoever calls."""
    brackets = blocks = prefixes = choices = 0
    previous = Piece(0, "", "")
    for piece in pieces:
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

    def __init__(self, pieces: list[Piece], source: str) -> None:
        super().__init__(_ENVIRONMENT, "")
        self.stream = TokenStream(tokens(pieces), None, None)
        self._source = source
        for tag in _EXTENSIONS:
            self.extensions[tag] = _parse_extension

    def tree(self) -> nodes.Template:
        """The whole template. Unlike `parse`, this does not tell every node about an environment nobody asks for."""
        return nodes.Template(self.subparse(), lineno=1)

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
            space = _SPACE.match(self._source, token.lineno + len("not"))
            test.node.lineno = space.end() if space else token.lineno
        else:
            test.lineno = token.lineno
        return test


def _parse_extension(parser: Parser) -> nodes.Node:
    token: Token = next(parser.stream)
    while parser.stream.current.type not in {"block_end", "eof"}:
        next(parser.stream)
    return nodes.ExprStmt(nodes.Const(token.value, lineno=token.lineno), lineno=token.lineno)
