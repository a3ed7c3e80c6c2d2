"""Says what is wrong with a text that Jinja2's parser refuses, where, and how to write it instead.

Each function below recognises one mistake people make (a missing brace, `=` for `==`, `&&`, a ternary from another
language …) from the pieces of the text around the place where the parser stopped. What none of them knows is reported
in the parser's words, without its jargon. Tested in tests/unit/expr/test_syntax_errors.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from noetl.expr.errors import TemplateSyntaxError
from noetl.expr.lexer import Piece
from noetl.expr.names import nearest

_CLOSES: Final = {"(": ")", "[": "]", "{": "}"}
_TAG_ENDS: Final = {"{{": "}}", "{%": "%}", "{#": "#}"}
_SWALLOWED: Final = re.compile(r"[}%]\}.*\{[{%]", re.DOTALL)
_STATEMENTS: Final = ("if", "elif", "else", "endif", "for", "endfor", "set", "endset", "raw", "endraw")


class Trouble(Struct, frozen=True):
    """Where a parser stopped, and why it says it did."""

    text: str
    pieces: Sequence[Piece]
    offset: int
    message: str

    def char(self) -> str:
        """The character at the place."""
        return self.text[self.offset : self.offset + 1]

    def word(self) -> str:
        """The name at the place, if one stands there."""
        match = re.compile(r"\w*").match(self.text, self.offset)
        return match.group() if match else ""

    def before(self) -> str:
        """The piece before the place."""
        pieces = [piece for piece in self.pieces if piece.offset < self.offset]
        return pieces[-1].text if pieces else ""

    def tag(self) -> Piece | None:
        """The `{{` or `{%` that is open at the place."""
        opened: Piece | None = None
        for piece in self.pieces:
            if piece.offset > self.offset:
                break
            if piece.type in {"variable_begin", "block_begin"}:
                opened = piece
            elif piece.type in {"variable_end", "block_end"} and piece.offset < self.offset:
                opened = None
        return opened

    def bracket(self) -> Piece | None:
        """The innermost bracket that is open at the place."""
        stack: list[Piece] = []
        for piece in self.pieces:
            if piece.offset >= self.offset:
                break
            if piece.type == "operator" and piece.text in _CLOSES:
                stack.append(piece)
            elif piece.type == "operator" and piece.text in ")]}" and stack:
                stack.pop()
        return stack[-1] if stack else None

    def block(self) -> tuple[str, int] | None:
        """The name and offset of the innermost statement that no end closes."""
        stack: list[tuple[str, int]] = []
        for begin, name in pairwise(self.pieces):
            if begin.type != "block_begin" or name.type != "name":
                continue
            if name.text.startswith("end"):
                if stack and stack[-1][0] == name.text[3:]:
                    stack.pop()
            elif name.text not in {"elif", "else"}:
                stack.append((name.text, begin.offset))
        return stack[-1] if stack else None


def _error(message: str, offset: int, fix: str) -> TemplateSyntaxError:
    return TemplateSyntaxError(message, offset, fix)


def _open_quote(trouble: Trouble) -> TemplateSyntaxError | None:
    """A quote that nobody closed takes the next one for its end, and the tags between the two for text."""
    for piece in trouble.pieces:
        if piece.type == "string" and piece.offset < trouble.offset and _SWALLOWED.search(piece.text):
            return _error("this quote is never closed", piece.offset, f"add a `{piece.text[0]}` at the end of the text")
    return None


def _nested_braces(trouble: Trouble) -> TemplateSyntaxError | None:
    tag = trouble.tag()
    if tag is None or tag.type != "variable_begin":
        return None
    inner = trouble.text.find("{{", tag.offset + 2, trouble.offset + 2)
    if inner < 0 or "'" in trouble.text[tag.offset : inner] or '"' in trouble.text[tag.offset : inner]:
        return None
    return _error("`{{` stands inside `{{ … }}`", inner, "drop the inner braces: names need none inside an expression")


def _open_at_the_end(trouble: Trouble) -> TemplateSyntaxError | None:
    if not trouble.message.startswith("unexpected end of template"):
        return None
    bracket, tag = trouble.bracket(), trouble.tag()
    if bracket is not None:
        return _unclosed(bracket)
    if tag is None:
        return None
    mark = tag.text[:2]
    return _error(f"`{mark}` is never closed", tag.offset, f"add `{_TAG_ENDS[mark]}`")


def _unclosed(bracket: Piece) -> TemplateSyntaxError:
    return _error(f"`{bracket.text}` is never closed", bracket.offset, f"add `{_CLOSES[bracket.text]}`")


def _brackets(trouble: Trouble) -> TemplateSyntaxError | None:
    char = trouble.char()
    if char not in {")", "]", "}"} or not trouble.message.startswith("unexpected '"):
        return None
    bracket, tag = trouble.bracket(), trouble.tag()
    mark = tag.text[:2] if tag is not None else "{{"
    if bracket is not None:
        if trouble.text.startswith(_TAG_ENDS[mark], trouble.offset):
            return _unclosed(bracket)
        wanted = _CLOSES[bracket.text]
        message = f"`{char}` stands where the `{bracket.text}` before it wants `{wanted}`"
        return _error(message, trouble.offset, f"write `{wanted}`, or close the brackets in the order they were opened")
    if char != "}":
        opening = next(key for key, value in _CLOSES.items() if value == char)
        return _error(f"there is no `{opening}` for this `{char}`", trouble.offset, f"remove it, or add `{opening}`")
    if mark == "{%":
        return _error("a statement that starts with `{%` ends with `}`", trouble.offset, "close it with `%}`")
    if trouble.before() == "%":
        return _error("an expression that starts with `{{` ends with `%}`", trouble.offset - 1, "close it with `}}`")
    if "}}" in trouble.text[trouble.offset + 1 : trouble.offset + 4]:
        return _error("there is one `}` too many", trouble.offset, "remove it")
    return _error("an expression that starts with `{{` ends with a single `}`", trouble.offset, "close it with `}}`")


_CHARS: Final[Mapping[str, tuple[str, str]]] = {
    "&": ("`&` is no operator here", "write `and`"),
    "!": ("`!` is no operator here", "write `not`, or `!=` to compare"),
    "?": ("`a ? b : c` is not how a choice is written here", "write `b if a else c`"),
    "'": ("this quote is never closed", "add a `'` at the end of the text"),
    '"': ("this quote is never closed", 'add a `"` at the end of the text'),
    "$": ("names carry no `$`", "remove the `$`"),
    "`": ("text is not written in backquotes here", "use `'…'` or `\"…\"`"),
    "@": ("`@` is no operator here", "remove it; quote it if it belongs to a text"),
    ";": ("`;` does not separate statements here", "write one `{% … %}` for each statement"),
    "\\": ("a backslash belongs inside quotes", "put the text in quotes"),
    "#": ("`#` starts no comment inside a template tag", "write `{# … #}` outside of it"),
    "^": ("`^` is no operator here", "powers are written `**`"),
}


def _characters(trouble: Trouble) -> TemplateSyntaxError | None:
    char = trouble.char()
    if not trouble.message.startswith("unexpected char") and char != ";":
        return None
    if char in "‘’“”":
        return _error("a typographic quote starts no text", trouble.offset, "use a straight `'` or `\"`")
    message, fix = _CHARS.get(char, (f"`{char}` has no meaning here", "remove it, or put it in quotes"))
    return _error(message, trouble.offset, fix)


def _single_equals(trouble: Trouble) -> TemplateSyntaxError | None:
    if trouble.char() != "=":
        return None
    three = trouble.text[max(trouble.offset - 2, 0) : trouble.offset + 1]
    if three in {"===", "!=="}:
        return _error(f"`{three}` is no operator here", trouble.offset - 2, f"write `{three[:2]}`")
    return _error("`=` does not compare", trouble.offset, "write `==`")


def _double_bar(trouble: Trouble) -> TemplateSyntaxError | None:
    if trouble.char() != "|" or trouble.text[trouble.offset - 1 : trouble.offset] != "|":
        return None
    return _error("`||` is no operator here", trouble.offset - 1, "write `or`; `|` applies a filter")


def _words(trouble: Trouble) -> TemplateSyntaxError | None:
    word, before = trouble.word(), trouble.before()
    bracket = trouble.bracket()
    if word == "for" and bracket is not None:
        fix = "use filters: `rows | map(attribute='id')`, `rows | selectattr('ok')`"
        return _error("there are no comprehensions here", bracket.offset, fix)
    if before == "lambda" or word == "lambda":
        place = trouble.text.rfind("lambda", 0, trouble.offset + 6)
        return _error("there is no `lambda` here", place, "use a filter such as `map`, `select` or `sort`")
    if word in {"AND", "OR", "NOT", "IN", "IS", "IF", "ELSE"} and "expected" in trouble.message:
        return _error(f"`{word}` is written small", trouble.offset, f"write `{word.lower()}`")
    return None


def _unknown_tag(trouble: Trouble) -> TemplateSyntaxError | None:
    if not trouble.message.startswith("Encountered unknown tag"):
        return None
    word, block = trouble.word(), trouble.block()
    if word in {"elseif", "elsif"}:
        return _error(f"there is no statement `{word}`", trouble.offset, "write `elif`")
    if word.startswith("end") or word in {"elif", "else"}:
        opened = block[0] if block is not None and block[0] != word else None
        fix = f"close `{opened}` with `{{% end{opened} %}}` first" if opened else "remove it, or add its beginning"
        return _error(f"`{word}` has no beginning that it belongs to", trouble.offset, fix)
    near = nearest(word, _STATEMENTS, 1)
    fix = f"did you mean `{near[0]}`?" if near else "the statements are `if`, `for` and `set`"
    return _error(f"there is no statement `{word}`", trouble.offset, fix)


def _open_block(trouble: Trouble) -> TemplateSyntaxError | None:
    block = trouble.block()
    if not trouble.message.startswith("Unexpected end of template") or block is None:
        return None
    name, offset = block
    return _error(f"`{{% {name} … %}}` is never closed", offset, f"add `{{% end{name} %}}`")


def _open_comment(trouble: Trouble) -> TemplateSyntaxError | None:
    if trouble.message.startswith("Missing end of comment"):
        return _error("`{#` is never closed", trouble.text.rfind("{#", 0, trouble.offset), "add `#}`")
    if trouble.message.startswith("Missing end of raw"):
        return _error("`{% raw %}` is never closed", trouble.text.rfind("{%", 0, trouble.offset), "add `{% endraw %}`")
    return None


def _empty(trouble: Trouble) -> TemplateSyntaxError | None:
    tag = trouble.tag()
    if (
        tag is None
        or trouble.before() != tag.text
        or trouble.text[trouble.offset :].lstrip("-")[:2] not in {"}}", "%}"}
    ):
        return None
    mark = tag.text[:2]
    return _error(f"there is nothing between `{mark}` and `{_TAG_ENDS[mark]}`", tag.offset, "write an expression")


def _missing_name(trouble: Trouble) -> TemplateSyntaxError | None:
    if trouble.message.startswith("expected name or number"):
        return _error(
            "a name is missing after `.`", trouble.offset, "write the key, or `['key']` if it has other signs"
        )
    if trouble.message.startswith("expected token 'name'") and trouble.before() == "|":
        return _error(
            "the name of a filter is missing after `|`", trouble.offset, "write a filter, such as `default('')`"
        )
    return None


_RECOGNISERS: Final[tuple[Callable[[Trouble], TemplateSyntaxError | None], ...]] = (
    _open_comment,
    _open_quote,
    _nested_braces,
    _open_at_the_end,
    _brackets,
    _characters,
    _single_equals,
    _double_bar,
    _words,
    _unknown_tag,
    _open_block,
    _empty,
    _missing_name,
)
_JARGON: Final = (
    ("begin of print statement", "{{"),
    ("end of print statement", "}}"),
    ("begin of statement block", "{%"),
    ("end of statement block", "%}"),
    ("template data / text", "text"),
    ("expected token", "expected"),
    ("end of template", "the end of the text"),
)


def explain(trouble: Trouble) -> TemplateSyntaxError:
    """The error to show for a place where the parser stopped."""
    for recognise in _RECOGNISERS:
        error = recognise(trouble)
        if error is not None:
            return error
    message = re.sub(r" at \d+$", "", trouble.message.rstrip("."))
    for jargon, plain in _JARGON:
        message = message.replace(jargon, plain)
    return TemplateSyntaxError(re.sub(r"'([^']+)'", r"`\1`", message), min(trouble.offset, len(trouble.text)))
