"""Methods of strings, lists, maps and dates in templates; none changes its value.

A method exists only where it is called: `x.items` is the key, `x.items()` the method. Costs are drawn first. Tested in
tests/unit/expr/builtins/test_methods.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from noetl.expr.builtins.filters import maps, text
from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.formatting import fill, format_date
from noetl.expr.runtime.iteration import items_of, number
from noetl.expr.runtime.operators import backward_cost, equal, search_cost
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import CONTAINERS, kind_of, shown

Implementation = Callable[..., Any]


def _text(value: Any, name: str) -> str:
    if isinstance(value, Undefined):
        value.fail()
    if not isinstance(value, str):
        raise EvaluationError(f"`{name}` must be a string, not {kind_of(value)}")
    return value


def _simple(name: str, operate: Callable[[str], Any]) -> Implementation:
    """Make a string method without arguments whose result has the string's size."""

    def method(context: Context, value: str) -> Any:
        context.spend(len(value) // SLOT)
        context.produce(len(value))
        made = operate(value)
        if isinstance(made, str):
            context.produce(len(made) - len(value))  # some letters become two or three
        return made

    method.__doc__ = f"Python's `str.{name}`."
    return method


def _strip(name: str, operate: Callable[[str, str | None], str]) -> Implementation:
    def method(context: Context, value: str, chars: str | None = None) -> str:
        text.draw_strip(context, value, None if chars is None else _text(chars, "chars"))
        return operate(value, chars)

    method.__doc__ = f"Python's `str.{name}`."
    return method


def _pad(name: str, operate: Callable[[str, int, str], str]) -> Implementation:
    def method(context: Context, value: str, width: int, fillchar: str = " ") -> str:
        if len(_text(fillchar, "fillchar")) != 1:
            raise EvaluationError("`fillchar` must be one character")
        context.produce(max(len(value), number("width", width)))
        return operate(value, width, fillchar)

    method.__doc__ = f"Python's `str.{name}`."
    return method


def _ends(name: str, operate: Callable[[str, Any], bool]) -> Implementation:
    def method(context: Context, value: str, affix: Any) -> bool:
        affixes = tuple(affix) if isinstance(affix, list | tuple) else (affix,)
        context.spend(3 * len(affixes))
        checked = tuple(_text(item, "affix") for item in affixes)
        context.spend(sum(map(len, checked)) // 256)
        return operate(value, checked)

    method.__doc__ = f"Python's `str.{name}`; a list means any of them."
    return method


def _search(name: str, operate: Callable[[str, str, int, int], int]) -> Implementation:
    find_cost = backward_cost if name.startswith("r") else search_cost

    def method(context: Context, value: str, sub: str, start: int = 0, end: int | None = None) -> int:
        context.spend(find_cost(value, _text(sub, "sub")))
        stop = len(value) if end is None else number("end", end)
        try:
            return operate(value, sub, number("start", start), stop)
        except ValueError:
            raise EvaluationError(f"the string does not contain `{shown(sub)}`") from None

    method.__doc__ = f"Python's `str.{name}`."
    return method


def _split(name: str, operate: Callable[[str, str | None, int], list[str]]) -> Implementation:
    def method(context: Context, value: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
        if sep is not None and not _text(sep, "sep"):
            raise EvaluationError("the separator is empty")
        if sep:
            context.spend(backward_cost(value, sep) if name.startswith("r") else search_cost(value, sep))
        text.draw_split(context, value, sep)
        return operate(value, sep, number("maxsplit", maxsplit))

    method.__doc__ = f"Python's `str.{name}`."
    return method


def splitlines(context: Context, value: str, keepends: bool = False) -> list[str]:
    """Python's `str.splitlines`."""
    text.draw_split(context, value, None)
    return value.splitlines(bool(keepends))


def partition(context: Context, value: str, sep: str) -> tuple[str, str, str]:
    """Python's `str.partition`."""
    if not _text(sep, "sep"):
        raise EvaluationError("the separator is empty")
    context.spend(search_cost(value, sep))
    context.produce(len(value))
    return value.partition(sep)


def zfill(context: Context, value: str, width: int) -> str:
    """Python's `str.zfill`."""
    context.produce(max(len(value), number("width", width)))
    return value.zfill(width)


def replace(context: Context, value: str, old: str, new: str, count: int = -1) -> str:
    """Python's `str.replace`."""
    return text.replace_text(context, value, _text(old, "old"), _text(new, "new"), number("count", count))


def join(context: Context, value: str, items: Any) -> str:
    """Python's `str.join`, for items that are strings."""
    parts = [_text(item, "item") for item in items_of(context, items, 2)]
    context.produce(sum(map(len, parts)) + len(value) * len(parts))
    return value.join(parts)


def format_(context: Context, value: str, *args: Any, **named: Any) -> str:
    """Python's `str.format`, with positions and names as fields only."""
    return fill(context, value, args, named)


def removeprefix(context: Context, value: str, prefix: str) -> str:
    """Python's `str.removeprefix`."""
    context.spend(len(_text(prefix, "prefix")) // 256)
    context.produce(len(value))
    return value.removeprefix(prefix)


def removesuffix(context: Context, value: str, suffix: str) -> str:
    """Python's `str.removesuffix`."""
    context.spend(len(_text(suffix, "suffix")) // 256)
    context.produce(len(value))
    return value.removesuffix(suffix)


TEXT: Final[Mapping[str, Implementation]] = {
    **{
        name: _simple(name, operate)
        for name, operate in {
            "capitalize": str.capitalize, "casefold": str.casefold, "isalnum": str.isalnum, "isalpha": str.isalpha,
            "isdecimal": str.isdecimal, "isdigit": str.isdigit, "islower": str.islower, "isnumeric": str.isnumeric,
            "isspace": str.isspace, "istitle": str.istitle, "isupper": str.isupper, "lower": str.lower,
            "swapcase": str.swapcase, "title": str.title, "upper": str.upper,
        }.items()
    },
    "center": _pad("center", str.center), "count": _search("count", str.count),
    "endswith": _ends("endswith", str.endswith), "find": _search("find", str.find), "format": format_,
    "index": _search("index", str.index), "join": join, "ljust": _pad("ljust", str.ljust),
    "lstrip": _strip("lstrip", str.lstrip), "partition": partition, "removeprefix": removeprefix,
    "removesuffix": removesuffix, "replace": replace, "rfind": _search("rfind", str.rfind),
    "rjust": _pad("rjust", str.rjust), "rsplit": _split("rsplit", str.rsplit), "rstrip": _strip("rstrip", str.rstrip),
    "split": _split("split", str.split), "splitlines": splitlines, "startswith": _ends("startswith", str.startswith),
    "strip": _strip("strip", str.strip), "zfill": zfill,
}  # fmt: skip


def count(context: Context, value: list[Any], item: Any) -> int:
    """Number of items equal to this one."""
    return sum(equal(context, item, other) for other in items_of(context, value, 4))


def index(context: Context, value: list[Any], item: Any) -> int:
    """Position of the first item equal to this one."""
    for position, other in enumerate(items_of(context, value, 4)):
        if equal(context, item, other):
            return position
    raise EvaluationError("the list does not contain the item")


def get(_context: Context, value: Mapping[Any, Any], key: Any, default: Any = None) -> Any:
    """Value under `key`, or `default`."""
    return default if isinstance(key, CONTAINERS) else value.get(key, default)


def copy(_context: Context, value: Any) -> Any:
    """The value itself: values are immutable, so there is nothing to copy."""
    return value


LIST: Final[Mapping[str, Implementation]] = {"copy": copy, "count": count, "index": index}
MAP: Final[Mapping[str, Implementation]] = {
    "copy": copy, "get": get, "items": maps.items, "keys": maps.keys, "values": maps.values,
}  # fmt: skip


def strftime(context: Context, value: date, format: str) -> str:
    """Date formatted by a pattern such as `%Y-%m-%d`."""
    context.spend(30 + len(_text(format, "format")))
    context.produce(len(format) * SLOT)
    return format_date(value, format)


def timestamp(_context: Context, value: datetime) -> float:
    """Seconds since 1970; UTC if the date has no time zone."""
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def _getter(summary: str, operate: Callable[[Any], Any]) -> Implementation:
    def method(_context: Context, value: Any) -> Any:
        return operate(value)

    method.__doc__ = summary
    return method


DATE: Final[Mapping[str, Implementation]] = {
    "isoformat": _getter("Date in ISO 8601.", lambda value: value.isoformat()),
    "strftime": strftime,
    "weekday": _getter("Day of the week, Monday is 0.", lambda value: value.weekday()),
}
DATETIME: Final[Mapping[str, Implementation]] = {
    **DATE,
    "date": _getter("Date without the time.", lambda value: value.date()),
    "timestamp": timestamp,
}
DURATION: Final[Mapping[str, Implementation]] = {
    "total_seconds": _getter("Duration in seconds.", lambda value: value.total_seconds())
}
METHODS: Final = frozenset({*TEXT, *LIST, *MAP, *DATETIME, *DURATION})

_BY_TYPE: Final[tuple[tuple[Any, Mapping[str, Implementation]], ...]] = (
    (str, TEXT),
    (list | tuple, LIST),
    (Mapping, MAP),
    (datetime, DATETIME),
    (date, DATE),
    (timedelta, DURATION),
)


def method_of(value: Any, name: str) -> Implementation:
    """Return the method of this value, or raise an error that names the value's type."""
    if isinstance(value, Undefined):
        value.fail()
    for types, methods in _BY_TYPE:
        if isinstance(value, types) and name in methods:
            return methods[name]
    raise EvaluationError(f"{kind_of(value)} has no method `{name}`")
