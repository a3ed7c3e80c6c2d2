"""Parse template source into Jinja2's tree, with offsets in place of line numbers.

Uses Jinja2's own parser. Source that would exhaust the parser's recursion is refused by its lexemes, before parsing.
Does not resolve names, filters or statements. Tested in tests/unit/expr/syntax/test_parser.py and test_syntax_errors.py.
"""

from __future__ import annotations

import re
from typing import Any, Final

from jinja2 import TemplateSyntaxError as JinjaSyntaxError
from jinja2 import nodes
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

from noetl.expr.errors import TemplateSyntaxError
from noetl.expr.syntax.lexer import ENVIRONMENT, Lexeme, LexError, jinja_tokens, scan
from noetl.expr.syntax.syntax_errors import ParseFailure, explain

SOURCE_LIMIT: Final = 262_144
_LEXEME_LIMIT: Final = 30_000  # each takes about 500 bytes in a compiled template
# Stack frames that the parser needs, measured per construct. The limit leaves room for the caller's frames.
_FRAMES: Final = 520
_BRACKET_FRAMES: Final = 15
_BLOCK_FRAMES: Final = 4

_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_BEFORE_PREFIX: Final = frozenset({"(", "[", "{", ",", ":", "-", "+", "not", "and", "or", "if", "else", "in"})
_SMALLER: Final = "split it into smaller parts"
_SPACE: Final = re.compile(r"\s*")
_MARKS: Final = re.compile(r"\{[{%#]")
# Statements of Jinja2's extensions: parsed, so that they are reported as unsupported statements.
_EXTENSIONS: Final = ("do", "break", "continue", "trans", "debug")


def has_template(source: str) -> bool:
    """Whether `source` contains a template delimiter: `{{`, `{%` or `{#`."""
    return _MARKS.search(source) is not None


def parse(source: str) -> nodes.Template:
    """Return Jinja2's tree. Raises TemplateSyntaxError with offset and message."""
    if len(source) > SOURCE_LIMIT:
        raise TemplateSyntaxError(
            f"the template is {len(source):,} characters long; the limit is {SOURCE_LIMIT:,}",
            0,
            "move large strings out of the template",
        )
    lexemes: list[Lexeme] = []
    try:
        scan(source, lexemes)
        if len(lexemes) > _LEXEME_LIMIT:
            where = lexemes[_LEXEME_LIMIT].offset
            raise TemplateSyntaxError(f"the template has more than {_LEXEME_LIMIT:,} parts", where, _SMALLER)
        _check_depth(lexemes)
        return _Offsets(lexemes, source).tree()
    except LexError as error:
        raise explain(ParseFailure(source, lexemes, error.offset, error.message)) from None
    except JinjaSyntaxError as error:
        raise explain(ParseFailure(source, lexemes, error.lineno, error.message or "")) from None
    except RecursionError:
        raise TemplateSyntaxError("the template is nested too deeply", 0, _SMALLER) from None


def _check_depth(lexemes: list[Lexeme]) -> None:
    """Refuse source that would exhaust the stack, at the same depth for every caller."""
    brackets = blocks = prefixes = choices = 0
    previous = Lexeme(0, "", "")
    for lexeme in lexemes:
        prefix = lexeme.text in {"-", "+", "not"} and (
            previous.type.endswith("_begin") or previous.text in _BEFORE_PREFIX
        )
        prefixes = prefixes + 1 if prefix else 0
        if lexeme.type == "operator":
            brackets += (lexeme.text in _OPENING) - (lexeme.text in _CLOSING)
        elif lexeme.type == "name" and previous.type == "block_begin":
            blocks += (lexeme.text in {"if", "for", "set"}) - lexeme.text.startswith("end")
        elif lexeme.type == "name":
            choices += lexeme.text == "else"
        elif lexeme.type in {"variable_end", "block_end"}:
            choices = 0
        if brackets * _BRACKET_FRAMES + blocks * _BLOCK_FRAMES + prefixes + choices > _FRAMES:
            raise TemplateSyntaxError("the template is nested too deeply", lexeme.offset, _SMALLER)
        previous = lexeme


class _Offsets(Parser):
    """Jinja2's parser with offsets; lookups point at the key, tests at their name."""

    def __init__(self, lexemes: list[Lexeme], source: str) -> None:
        super().__init__(ENVIRONMENT, "")
        self.stream = TokenStream(jinja_tokens(lexemes), None, None)
        self._source = source
        for tag in _EXTENSIONS:
            self.extensions[tag] = _parse_extension

    def tree(self) -> nodes.Template:
        """Parse the template. Unlike `parse`, attaches no environment to the nodes."""
        return nodes.Template(self.subparse(), lineno=1)

    def parse_print(self) -> Any:
        """Refuse `{% print x %}` like every other unsupported statement."""
        return _parse_extension(self)

    def parse_subscript(self, node: nodes.Expr) -> nodes.Getattr | nodes.Getitem:
        offset = self.stream.look().lineno
        lookup = super().parse_subscript(node)
        lookup.lineno = offset
        return lookup

    def parse_test(self, node: nodes.Expr) -> nodes.Expr:
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
