"""Format strings safely: `'%s' % x`, `'{}'.format(x)` and dates.

Python's `str.format` reads attributes (`'{0.__class__}'`) and pads to any width. Here a field is only a position or a
name, and the size of a width or precision is drawn first. Tested in tests/unit/expr/runtime/test_formatting.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from string import Formatter
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import Context
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import shown

_PERCENT: Final = re.compile(
    r"%(?:\((?P<name>[^)]*)\))?[-#0 +]*(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+))?(?P<type>.)?", re.DOTALL
)
_FIELD: Final = re.compile(r"\w*\Z")
_SPEC: Final = re.compile(
    r"(?:.?[<>=^])?[-+ ]?z?#?0?(?P<width>\d+)?[,_]?(?:\.(?P<precision>\d+))?[a-zA-Z%]?\Z", re.DOTALL
)
# Flags and a letter. The C library also accepts a width, which pads to any size: refused.
_DIRECTIVE: Final = re.compile(r"%(?:[-_0^#]?[a-zA-Z%])?")
_DIGITS: Final = 9


def _size(digits: str | None) -> int:
    if digits and len(digits) > _DIGITS:
        raise EvaluationError(f"the width {digits[:12]}… is too large")
    return int(digits) if digits else 0


def percent(context: Context, template: str, values: Any) -> str:
    """`template % values`."""
    if isinstance(values, Undefined):
        values.fail()
    size = len(template)
    for match in _PERCENT.finditer(template):
        if "*" in (match["width"], match["precision"]):
            raise EvaluationError("`*` is not supported as a width", None, "write the width as a number")
        size += _size(match["width"]) + _size(match["precision"])
        context.spend(1)
        if match["name"] is not None and isinstance(values, Mapping):
            context.budget.weigh(values.get(match["name"]))
    context.produce(size)
    context.budget.weigh(values)
    if isinstance(values, list):
        values = (values,)
    try:
        return str(template % values)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise EvaluationError(f"cannot format the string: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return f"no value for {error}" if isinstance(error, KeyError) else str(error)


def fill(context: Context, template: str, values: Sequence[Any], named: Mapping[str, Any]) -> str:
    """`template.format(*values, **named)`, where a field is a position or a name."""
    made: list[str] = []
    automatic = 0
    try:
        fields = list(Formatter().parse(template))
    except ValueError as error:
        raise EvaluationError(f"cannot format the string: {error}") from None
    for text, field, spec, conversion in fields:
        context.spend(1)
        context.produce(len(text))
        made.append(text)
        if field is None:
            continue
        if not _FIELD.match(field):
            message = f"the field `{{{field}}}` is neither a position nor a name"
            raise EvaluationError(message, None, "look up the value first and pass it as an argument")
        name = field or str(automatic)
        automatic += not field
        made.append(_field(context, _value(name, values, named), spec or "", conversion))
    return "".join(made)


def _value(name: str, values: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if name.isdecimal() and len(name) < _DIGITS:
        if int(name) < len(values):
            return values[int(name)]
    elif name in named:
        return named[name]
    raise EvaluationError(f"no value for the field `{{{name}}}`")


def _field(context: Context, value: Any, spec: str, conversion: str | None) -> str:
    if isinstance(value, Undefined):
        value = context.text(value)
    if conversion not in {None, "r", "s", "a"}:
        raise EvaluationError(f"`!{conversion}` is not a conversion", None, "use `!r` or `!s`")
    if conversion is not None:
        context.budget.weigh(value)
        value = repr(value) if conversion == "r" else ascii(value) if conversion == "a" else str(value)
    if isinstance(value, datetime | date) and spec:
        return format_date(value, spec)
    if isinstance(value, list | tuple | dict) or not spec:
        text = context.text(value)
        context.produce(len(text))
        if spec:
            raise EvaluationError("a list or map has no format specifier", None, "format its items, or use `| tojson`")
        return text
    match = _SPEC.match(spec)
    if match is None:
        raise EvaluationError(f"`{shown(spec)}` is not a format specifier")
    context.produce(_size(match["width"]) + _size(match["precision"]) + (len(value) if isinstance(value, str) else 32))
    try:
        return format(value, spec)
    except (TypeError, ValueError, OverflowError) as error:
        raise EvaluationError(f"`{spec}` does not fit the value: {error}") from None


def format_date(value: datetime | date, template: str) -> str:
    """Format a date by a pattern such as `%Y-%m-%d`."""
    position = template.find("%")
    while position >= 0:
        match = _DIRECTIVE.match(template, position)
        if match is None or len(match.group()) < 2:
            raise EvaluationError(f"`{template[position : position + 3]}` is not a date directive")
        position = template.find("%", match.end())
    if len(template) > 1_000:
        raise EvaluationError("a date pattern must be at most 1,000 characters")
    try:
        return value.strftime(template)
    except (ValueError, UnicodeError) as error:
        raise EvaluationError(f"cannot format the date: {error}") from None
