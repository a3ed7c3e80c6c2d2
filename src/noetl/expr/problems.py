"""What is wrong with a template that has the right syntax: unknown names of things to call, refused statements.

A template with problems still compiles, so that all of them are found at once and its reads are known; evaluating it
raises when it comes to one. Unknown names of *data* are not problems here: only the caller knows what there is.
Tested in tests/unit/expr/test_problems.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct

from noetl.expr.names import nearest

ProblemKind = Literal["filter", "test", "function", "method", "statement", "attribute"]


class Problem(Struct, frozen=True):
    """One thing that is wrong, and where."""

    kind: ProblemKind
    name: str
    offset: int
    message: str
    candidates: tuple[str, ...] = ()


_NOT_PLAIN: Final = "templates see plain data only: use `x['name']` to look up a key"
_CHANCE: Final = "it gives another value each time, and a template gives the same value for the same data"
_HTML: Final = "templates here are not HTML"
_NO_HELPER: Final = "it is not part of the language"
# Things that Jinja2 or Python people know and that are left out on purpose, with the reason.
_LEFT_OUT: Final[Mapping[tuple[ProblemKind, str], str]] = {
    ("filter", "attr"): _NOT_PLAIN,
    ("filter", "random"): _CHANCE,
    ("filter", "shuffle"): _CHANCE,
    ("filter", "xmlattr"): _HTML,
    ("filter", "urlize"): _HTML,
    ("filter", "pprint"): "use `tojson(indent=2)`",
    ("function", "lipsum"): _NO_HELPER,
    ("function", "cycler"): "use `loop.cycle('a', 'b')` inside a `for`",
    ("function", "joiner"): "use the filter `join`",
    ("function", "super"): _NO_HELPER,
    ("function", "caller"): _NO_HELPER,
    ("function", "len"): "use the filter: `value | length`",
    ("function", "str"): "use the filter: `value | string`",
    ("function", "sorted"): "use the filter: `value | sort`",
    ("function", "reversed"): "use the filter: `value | reverse`",
    ("function", "enumerate"): "use `loop.index0` inside a `for`",
    ("function", "set"): "use the filter: `value | unique`",
    ("function", "print"): "a template prints nothing: its value is what it gives",
    ("function", "open"): "a template reads data only: files are for tasks",
    ("function", "eval"): "a template evaluates no other code",
    ("function", "getattr"): _NOT_PLAIN,
}
_CHANGES: Final = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add"}
)  # fmt: skip


def unknown(kind: ProblemKind, name: str, offset: int, known: Iterable[str], filters: Iterable[str] = ()) -> Problem:
    """A filter, test, function or method that does not exist; `filters` are hinted at when a function is one of them."""
    reason = _LEFT_OUT.get((kind, name))
    if reason is not None:
        return Problem(kind, name, offset, f"there is no {kind} `{name}`: {reason}")
    if kind == "method" and name in _CHANGES:
        message = f"`{name}` would change the data, and a template changes nothing: make a new value instead"
        return Problem(kind, name, offset, f"{message} (`a + [b]`, `a | combine(b)`, `a | sort` …)")
    if kind == "function" and name in set(filters):
        return Problem(kind, name, offset, f"`{name}` is a filter, not a function: write `value | {name}`", (name,))
    candidates = nearest(name, known)
    return Problem(kind, name, offset, f"there is no {kind} `{name}`", candidates)


def refused_statement(name: str, offset: int) -> Problem:
    """A statement of Jinja2 that templates here do not have."""
    message = f"the statement `{name}` is not part of the language; there are `if`, `for` and `set`"
    return Problem("statement", name, offset, message)


def python_attribute(name: str, offset: int) -> Problem:
    """A name such as `__class__` after a dot."""
    message = f"`{name}` is a Python attribute, and templates see plain data only"
    return Problem("attribute", name, offset, f"{message}; if it is a key of your data, write `['{name}']`")
