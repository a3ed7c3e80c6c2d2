"""Filters on strings; converts other values.

Tested in tests/unit/expr/builtins/test_filters.py.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.builtins.filters.numbers import draw_float
from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.formatting import percent
from noetl.expr.runtime.iteration import number
from noetl.expr.runtime.operators import search_cost
from noetl.expr.runtime.value_types import kind_of, shown

_WORD_START: Final = re.compile(r"([-\s({\[<]+)")
_WORD: Final = re.compile(r"\w+")
_ESCAPES: Final = {"&": "&amp;", ">": "&gt;", "<": "&lt;", "'": "&#39;", '"': "&#34;"}
_SAFE_IN_SHELL: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def _produced(context: Context, text: str) -> str:
    context.produce(len(text))
    return text


def _words(context: Context, value: Any) -> str:
    text = context.text(value)
    context.spend(len(text) // SLOT)
    context.produce(len(text) if text.isascii() else len(text) * 2)  # some letters become two or three
    return text


def draw_strip(context: Context, text: str, chars: str | None) -> None:
    """Draw for a look at each character of the ends, among `chars`."""
    context.spend(len(text) * (len(chars or "") + SLOT) // 64)
    context.produce(len(text))


def draw_split(context: Context, text: str, separator: str | None) -> None:
    """Draw for the parts of a text."""
    parts = text.count(separator) + 1 if separator else len(text) // 2 + 1
    context.spend(len(text) // SLOT + parts // 2)
    context.produce(len(text) + parts * SLOT * 2)


def upper(context: Context, value: Any) -> str:
    """Convert to upper case."""
    return _words(context, value).upper()


def lower(context: Context, value: Any) -> str:
    """Convert to lower case."""
    return _words(context, value).lower()


def capitalize(context: Context, value: Any) -> str:
    """Upper-case the first letter, lower-case the others."""
    return _words(context, value).capitalize()


def title(context: Context, value: Any) -> str:
    """Capitalize every word."""
    text = _words(context, value)
    context.spend(len(text))
    context.produce(len(text) * SLOT)
    parts = _WORD_START.split(text)
    return "".join(part[0].upper() + part[1:].lower() for part in parts if part)


def trim(context: Context, value: Any, chars: str | None = None) -> str:
    """Remove white space, or `chars`, from both ends."""
    text = context.text(value)
    if chars is not None and not isinstance(chars, str):
        raise EvaluationError(f"`chars` must be a string, not {kind_of(chars)}")
    draw_strip(context, text, chars)
    return text.strip(chars)


def center(context: Context, value: Any, width: int = 80) -> str:
    """Center in `width` characters."""
    text = context.text(value)
    context.produce(max(len(text), number("width", width)))
    return text.center(width)


def indent(context: Context, value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Indent every line but the first by `width` spaces, or by the string `width`."""
    text = context.text(value)
    if not isinstance(width, str):
        context.produce(number("width", width))
    margin = width if isinstance(width, str) else " " * width
    draw_split(context, text, None)
    lines = (text + "\n").splitlines() if text else [""]
    context.spend(len(lines))
    context.produce(len(text) + len(lines) * len(margin))
    rest = [margin + line if line or blank else line for line in lines[1:]]
    indented = "\n".join([lines[0], *rest])
    return margin + indented if first else indented


def truncate(
    context: Context, value: Any, length: int = 255, killwords: bool = False, end: str = "...", leeway: int = 5
) -> str:
    """Cut to `length` characters, at the end of a word unless `killwords`."""
    text = context.text(value)
    number("leeway", leeway)
    if not isinstance(end, str):
        raise EvaluationError(f"`end` must be a string, not {kind_of(end)}")
    if number("length", length) < len(end):
        raise EvaluationError(f"`length` must be at least {len(end)}, the length of `{shown(end)}`")
    if len(text) <= length + leeway:
        return text
    context.produce(length)
    cut = text[: length - len(end)]
    return _produced(context, (cut if killwords else cut.rsplit(" ", 1)[0]) + end)


def wordcount(context: Context, value: Any) -> int:
    """Number of words."""
    text = _words(context, value)
    context.spend(len(text) // 2)
    return sum(1 for _ in _WORD.finditer(text))


def wordwrap(
    context: Context,
    value: Any,
    width: int = 79,
    break_long_words: bool = True,
    wrapstring: str = "\n",
    break_on_hyphens: bool = True,
) -> str:
    """Wrap to lines of `width` characters."""
    text = _words(context, value)
    if number("width", width) <= 0:
        raise EvaluationError("`width` must be positive")
    if not isinstance(wrapstring, str):
        raise EvaluationError(f"`wrapstring` must be a string, not {kind_of(wrapstring)}")
    context.spend(20 + len(text) * 4)
    context.produce(len(text) * SLOT)
    # Wrapping one long word copies the rest of it once per line.
    longest = max(map(len, text.split()), default=0)
    context.spend(longest * longest // (width * 256))
    context.produce((len(text) // width + text.count("\n")) * len(wrapstring))
    lines = [
        wrapstring.join(
            textwrap.wrap(
                line,
                width=width,
                expand_tabs=False,
                replace_whitespace=False,
                break_long_words=break_long_words,
                break_on_hyphens=break_on_hyphens,
            )
        )
        for line in text.splitlines()
    ]
    return wrapstring.join(lines)


def replace_text(context: Context, text: str, old: str, new: str, count: int = -1) -> str:
    """Return `text.replace(old, new, count)`, drawing the size of the result first."""
    context.spend(2 * search_cost(text, old))
    times = text.count(old)
    times = times if count < 0 else min(times, count)
    context.spend(times // SLOT)
    context.produce(max(len(text), len(text) + times * (len(new) - len(old))))
    return text.replace(old, new, count)


def replace(context: Context, value: Any, old: Any, new: Any, count: int | None = None) -> str:
    """Replace `old` by `new`, everywhere or `count` times."""
    times = -1 if count is None else number("count", count)
    return replace_text(context, context.text(value), context.text(old), context.text(new), times)


def split(context: Context, value: Any, separator: str | None = None, maxsplit: int = -1) -> list[str]:
    """Split at a separator, or at white space."""
    if separator == "":
        raise EvaluationError("the separator is empty", None, "use `| list` for single characters")
    if separator is not None and not isinstance(separator, str):
        raise EvaluationError(f"the separator must be a string, not {kind_of(separator)}")
    text = context.text(value)
    context.spend(search_cost(text, separator) if separator else 0)
    draw_split(context, text, separator)
    return text.split(separator, number("maxsplit", maxsplit))


def string(context: Context, value: Any) -> str:
    """Convert to a string."""
    return context.text(value)


def escape(context: Context, value: Any) -> str:
    """Escape `& < > ' "` as HTML entities."""
    text = _words(context, value)
    for sign, written in _ESCAPES.items():
        text = replace_text(context, text, sign, written)
    return text


def unchanged(_context: Context, value: Any) -> Any:
    """The value unchanged: templates do not escape, so nothing is marked safe."""
    return value


def raw(_context: Context, value: Any) -> Any:
    """The value unchanged; in SQL, inserted unquoted: you must make it safe."""
    return value


def quote(context: Context, value: Any) -> str:
    """Quote as one word of a shell command."""
    text = context.text(value)
    context.spend(len(text) // SLOT)
    if _SAFE_IN_SHELL.fullmatch(text):
        return text
    return "'" + replace_text(context, text, "'", "'\"'\"'") + "'"


def format_(context: Context, value: Any, *args: Any, **named: Any) -> str:
    """Fill in `%s`: `'%s is %d' | format(name, age)`."""
    return percent(context, context.text(value), named or args)


def filesizeformat(context: Context, value: Any, binary: bool = False) -> str:
    """Human-readable size in bytes: `13.5 kB`, or `13.2 KiB` with `binary`."""
    draw_float(context, value)
    context.spend(10)
    try:
        size = float(value)
    except (TypeError, ValueError, OverflowError):
        raise EvaluationError(f"the size must be a number, not {kind_of(value)}") from None
    step = 1024 if binary else 1000
    units = (
        ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]
        if binary
        else ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]
    )
    if size == 1:
        return "1 Byte"
    if size < step:
        return f"{int(size)} Bytes"
    for index, unit in enumerate(units, 2):
        if size < step**index or index == len(units) + 1:
            return f"{step * size / step**index:.1f} {unit}"
    raise AssertionError("the last unit takes every size")


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "capitalize": capitalize, "center": center, "e": escape, "escape": escape, "filesizeformat": filesizeformat,
    "forceescape": escape, "format": format_, "indent": indent, "lower": lower, "quote": quote, "raw": raw,
    "replace": replace, "safe": unchanged, "split": split, "string": string, "title": title, "trim": trim,
    "truncate": truncate, "upper": upper, "wordcount": wordcount, "wordwrap": wordwrap,
}  # fmt: skip
