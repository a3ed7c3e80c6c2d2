"""Explain a syntax error: what is wrong, where, and how to fix it.

Each function recognises one common mistake (a missing brace, `=` for `==`, `&&`, a ternary of another language, …) from the
tokens around the place where the parser stopped. Tested in tests/unit/expr/syntax/test_syntax_errors.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from noetl.expr.errors import TemplateSyntaxError
from noetl.expr.names import nearest
from noetl.expr.syntax.lexer import Lexeme

_CLOSES: Final = {"(": ")", "[": "]", "{": "}"}
_TAG_ENDS: Final = {"{{": "}}", "{%": "%}", "{#": "#}"}
_error: Final = TemplateSyntaxError
_SWALLOWED: Final = re.compile(r"[}%]\}.*\{[{%]", re.DOTALL)
_BINARY: Final = frozenset(
    {"+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "is"}
)
# Operators and words that a value must follow.
_OPEN_ENDED: Final = _BINARY | {":", "not", "if", "elif", "else", "for", "set"}
_STATEMENTS: Final = ("if", "elif", "else", "endif", "for", "endfor", "set", "endset", "raw", "endraw")


class ParseFailure(Struct, frozen=True):
    """Where the parser stopped, and its message."""

    text: str
    lexemes: Sequence[Lexeme]
    offset: int
    message: str

    def char(self) -> str:
        return self.text[self.offset : self.offset + 1]

    def word(self) -> str:
        """Return the name at the offset, or an empty string."""
        match = re.compile(r"\w*").match(self.text, self.offset)
        return match.group() if match else ""

    def previous(self) -> Lexeme | None:
        """Return the token before the offset, if there is one."""
        return next((lexeme for lexeme in reversed(self.lexemes) if lexeme.offset < self.offset), None)

    def before(self) -> str:
        """Return the text of the token before the offset, or an empty string."""
        previous = self.previous()
        return previous.text if previous else ""

    def tag(self) -> Lexeme | None:
        """Return the `{{` or `{%` that is open at the offset."""
        opened: Lexeme | None = None
        for lexeme in self.lexemes:
            if lexeme.offset > self.offset:
                break
            if lexeme.type in {"variable_begin", "block_begin"}:
                opened = lexeme
            elif lexeme.type in {"variable_end", "block_end"} and lexeme.offset < self.offset:
                opened = None
        return opened

    def bracket(self) -> Lexeme | None:
        """Return the innermost bracket that is open at the offset."""
        stack: list[Lexeme] = []
        for lexeme in self.lexemes:
            if lexeme.offset >= self.offset:
                break
            if lexeme.type == "operator" and lexeme.text in _CLOSES:
                stack.append(lexeme)
            elif lexeme.type == "operator" and lexeme.text in ")]}" and stack:
                stack.pop()
        return stack[-1] if stack else None

    def block(self) -> tuple[str, int] | None:
        """Return name and offset of the innermost unclosed statement."""
        stack: list[tuple[str, int]] = []
        for begin, name in pairwise(self.lexemes):
            if begin.type != "block_begin" or name.type != "name":
                continue
            if name.text.startswith("end"):
                if stack and stack[-1][0] == name.text[3:]:
                    stack.pop()
            elif name.text not in {"elif", "else"}:
                stack.append((name.text, begin.offset))
        return stack[-1] if stack else None


def _open_quote(failure: ParseFailure) -> TemplateSyntaxError | None:
    """Find an unclosed quote: it swallows the tags up to the next quote."""
    for lexeme in failure.lexemes:
        if lexeme.type == "string" and lexeme.offset < failure.offset and _SWALLOWED.search(lexeme.text):
            return _error("this quote is never closed", lexeme.offset, f"add `{lexeme.text[0]}` at its end")
    return None


def _nested_braces(failure: ParseFailure) -> TemplateSyntaxError | None:
    tag = failure.tag()
    if tag is None or tag.type != "variable_begin":
        return None
    inner = failure.text.find("{{", tag.offset + 2, failure.offset + 2)
    if inner < 0 or "'" in failure.text[tag.offset : inner] or '"' in failure.text[tag.offset : inner]:
        return None
    return _error("`{{` inside `{{ … }}`", inner, "remove the inner braces: names need none inside an expression")


def _open_at_the_end(failure: ParseFailure) -> TemplateSyntaxError | None:
    if not failure.message.startswith("unexpected end of template"):
        return None
    bracket, tag = failure.bracket(), failure.tag()
    if bracket is not None:
        return _unclosed(bracket)
    if tag is None:
        return None
    mark = tag.text[:2]
    return _error(f"`{mark}` is never closed", tag.offset, f"add `{_TAG_ENDS[mark]}`")


def _missing_value(failure: ParseFailure) -> TemplateSyntaxError | None:
    """Find an operator without a value after it: `{{ x + }}`, `{{ (x and) }}`."""
    last, rest = failure.previous(), failure.text[failure.offset :]
    if last is None or last.type not in {"operator", "name"} or last.text not in _OPEN_ENDED:
        return None
    if last.text == "%" and rest.startswith("}") and last.offset == failure.offset - 1:
        return None  # `{{ x %}`: the wrong end
    if rest[:1] in {")", "]", "}"} or rest.lstrip("-+")[:2] in {"}}", "%}"}:
        return _error(f"nothing follows `{last.text}`", last.offset, "write a value after it, or remove it")
    here = next((lexeme.text for lexeme in failure.lexemes if lexeme.offset == failure.offset), "")
    if here in _BINARY and last.text in _BINARY:
        fix = "write a value between them, or remove one"
        return _error(f"`{here}` follows `{last.text}` directly", failure.offset, fix)
    return None


def _unclosed(bracket: Lexeme) -> TemplateSyntaxError:
    return _error(f"`{bracket.text}` is never closed", bracket.offset, f"add `{_CLOSES[bracket.text]}`")


def _brackets(failure: ParseFailure) -> TemplateSyntaxError | None:
    char = failure.char()
    if char not in {")", "]", "}"} or not failure.message.startswith("unexpected '"):
        return None
    bracket, tag = failure.bracket(), failure.tag()
    mark = tag.text[:2] if tag is not None else "{{"
    if bracket is not None:
        if failure.text.startswith(_TAG_ENDS[mark], failure.offset):
            return _unclosed(bracket)
        wanted = _CLOSES[bracket.text]
        message = f"`{char}` does not close the `{bracket.text}` before it; expected `{wanted}`"
        return _error(message, failure.offset, f"write `{wanted}`, or close the brackets innermost first")
    if char != "}":
        opening = next(key for key, value in _CLOSES.items() if value == char)
        return _error(f"`{char}` has no matching `{opening}`", failure.offset, f"remove it, or add `{opening}`")
    if mark == "{%":
        return _error("a statement that starts with `{%` ends with `}`", failure.offset, "close it with `%}`")
    if failure.before() == "%":
        return _error("an expression that starts with `{{` ends with `%}`", failure.offset - 1, "close it with `}}`")
    if "}}" in failure.text[failure.offset + 1 : failure.offset + 4]:
        return _error("one `}` too many", failure.offset, "remove it")
    return _error("an expression that starts with `{{` ends with a single `}`", failure.offset, "close it with `}}`")


_CHARS: Final[Mapping[str, tuple[str, str]]] = {
    "&": ("`&` is not an operator", "write `and`"),
    "!": ("`!` is not an operator", "write `not`, or `!=` to compare"),
    "?": ("`a ? b : c` is not supported", "write `b if a else c`"),
    "'": ("this quote is never closed", "add `'` at its end"),
    '"': ("this quote is never closed", 'add `"` at its end'),
    "$": ("names have no `$`", "remove the `$`"),
    "`": ("strings are not written in backquotes", "use `'…'` or `\"…\"`"),
    "@": ("`@` is not an operator", "remove it, or quote it if it belongs to a string"),
    ";": ("`;` does not separate statements", "write one `{% … %}` for each statement"),
    "\\": ("a backslash is allowed inside quotes only", "put the string in quotes"),
    "#": ("`#` does not start a comment inside a tag", "write `{# … #}` outside the tag"),
    "^": ("`^` is not an operator", "write `**` for powers"),
}


def _characters(failure: ParseFailure) -> TemplateSyntaxError | None:
    char = failure.char()
    if not failure.message.startswith("unexpected char") and char != ";":
        return None
    if char in "‘’“”":
        return _error("a typographic quote does not start a string", failure.offset, "use a straight `'` or `\"`")
    message, fix = _CHARS.get(char, (f"`{char}` has no meaning here", "remove it, or put it in quotes"))
    return _error(message, failure.offset, fix)


def _single_equals(failure: ParseFailure) -> TemplateSyntaxError | None:
    if failure.char() != "=":
        return None
    three = failure.text[max(failure.offset - 2, 0) : failure.offset + 1]
    if three in {"===", "!=="}:
        return _error(f"`{three}` is not an operator", failure.offset - 2, f"write `{three[:2]}`")
    return _error("`=` does not compare", failure.offset, "write `==`")


def _double_bar(failure: ParseFailure) -> TemplateSyntaxError | None:
    if failure.char() != "|" or failure.text[failure.offset - 1 : failure.offset] != "|":
        return None
    return _error("`||` is not an operator", failure.offset - 1, "write `or`; `|` applies a filter")


def _words(failure: ParseFailure) -> TemplateSyntaxError | None:
    word, before = failure.word(), failure.before()
    bracket = failure.bracket()
    if word == "for" and bracket is not None:
        fix = "use filters: `rows | map(attribute='id')`, `rows | selectattr('ok')`"
        return _error("comprehensions are not supported", bracket.offset, fix)
    if before == "lambda" or word == "lambda":
        place = failure.text.rfind("lambda", 0, failure.offset + 6)
        return _error("`lambda` is not supported", place, "use a filter such as `map`, `select` or `sort`")
    if word in {"AND", "OR", "NOT", "IN", "IS", "IF", "ELSE"} and "expected" in failure.message:
        return _error(f"`{word}` must be lower case", failure.offset, f"write `{word.lower()}`")
    return None


def _unknown_tag(failure: ParseFailure) -> TemplateSyntaxError | None:
    if not failure.message.startswith("Encountered unknown tag"):
        return None
    word, block = failure.word(), failure.block()
    if word in {"elseif", "elsif"}:
        return _error(f"unknown statement `{word}`", failure.offset, "write `elif`")
    if word.startswith("end") or word in {"elif", "else"}:
        opened = block[0] if block is not None and block[0] != word else None
        fix = (
            f"close `{opened}` with `{{% end{opened} %}}` first"
            if opened
            else "remove it, or add the opening statement"
        )
        return _error(f"`{word}` has no matching opening statement", failure.offset, fix)
    near = nearest(word, _STATEMENTS, 1)
    fix = f"did you mean `{near[0]}`?" if near else "supported statements: `if`, `for` and `set`"
    return _error(f"unknown statement `{word}`", failure.offset, fix)


def _open_block(failure: ParseFailure) -> TemplateSyntaxError | None:
    block = failure.block()
    if not failure.message.startswith("Unexpected end of template") or block is None:
        return None
    name, offset = block
    return _error(f"`{{% {name} … %}}` is never closed", offset, f"add `{{% end{name} %}}`")


def _open_comment(failure: ParseFailure) -> TemplateSyntaxError | None:
    if failure.message.startswith("Missing end of comment"):
        return _error("`{#` is never closed", failure.text.rfind("{#", 0, failure.offset), "add `#}`")
    if failure.message.startswith("Missing end of raw"):
        return _error("`{% raw %}` is never closed", failure.text.rfind("{%", 0, failure.offset), "add `{% endraw %}`")
    return None


def _empty(failure: ParseFailure) -> TemplateSyntaxError | None:
    tag = failure.tag()
    if (
        tag is None
        or failure.before() != tag.text
        or failure.text[failure.offset :].lstrip("-")[:2] not in {"}}", "%}"}
    ):
        return None
    mark = tag.text[:2]
    return _error(f"nothing between `{mark}` and `{_TAG_ENDS[mark]}`", tag.offset, "write an expression")


def _missing_name(failure: ParseFailure) -> TemplateSyntaxError | None:
    if failure.message.startswith("expected name or number"):
        return _error(
            "a name is missing after `.`", failure.offset, "write the key, or `['key']` if it has other characters"
        )
    if failure.message.startswith("expected token 'name'") and failure.before() == "|":
        return _error("a filter name is missing after `|`", failure.offset, "write a filter, such as `default('')`")
    return None


_RECOGNISERS: Final[tuple[Callable[[ParseFailure], TemplateSyntaxError | None], ...]] = (
    _open_comment, _open_quote, _nested_braces, _open_at_the_end, _missing_value, _brackets, _characters, _single_equals,
    _double_bar, _words, _unknown_tag, _open_block, _empty, _missing_name,
)  # fmt: skip
_JARGON: Final = (
    ("begin of print statement", "{{"),
    ("end of print statement", "}}"),
    ("begin of statement block", "{%"),
    ("end of statement block", "%}"),
    ("template data / text", "text"),
    ("expected token", "expected"),
    ("end of template", "the end of the text"),
)


def explain(failure: ParseFailure) -> TemplateSyntaxError:
    """Return the error to show."""
    for recognise in _RECOGNISERS:
        error = recognise(failure)
        if error is not None:
            return error
    message = re.sub(r" at \d+$", "", failure.message.rstrip("."))
    for jargon, plain in _JARGON:
        message = message.replace(jargon, plain)
    return TemplateSyntaxError(re.sub(r"'([^']+)'", r"`\1`", message), min(failure.offset, len(failure.text)))
