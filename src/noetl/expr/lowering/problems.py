"""Problems of templates with valid syntax: unknown calls, unsupported statements.

A template with problems still compiles, so all of them are found at once and its reads are known; evaluating the
construct raises. Unknown *data* names are not problems here: only the caller knows its scope. Tested in
tests/unit/expr/lowering/test_problems.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct

from noetl.expr.names import nearest

ProblemKind = Literal["filter", "test", "function", "method", "statement", "attribute"]


class Problem(Struct, frozen=True):
    kind: ProblemKind
    name: str
    offset: int
    message: str
    candidates: tuple[str, ...] = ()


_NOT_PLAIN: Final = "templates see plain data only: use `x['name']` to look up a key"
_CHANCE: Final = "templates are deterministic: same data, same value"
_HTML: Final = "templates do not produce HTML"
_NO_HELPER: Final = "it is not part of the language"
# Names known from Jinja2 or Python that are left out on purpose, with the reason.
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
    ("function", "print"): "a template prints nothing; its value is its result",
    ("function", "open"): "templates read data only; use a task to read files",
    ("function", "eval"): "templates do not evaluate code",
    ("function", "getattr"): _NOT_PLAIN,
}
_CHANGES: Final = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add"}
)  # fmt: skip


def unknown(kind: ProblemKind, name: str, offset: int, known: Iterable[str], filters: Iterable[str] = ()) -> Problem:
    """Report an unknown callable; if a function is one of `filters`, hint at it."""
    reason = _LEFT_OUT.get((kind, name))
    if reason is not None:
        return Problem(kind, name, offset, f"unknown {kind} `{name}`: {reason}")
    if kind == "method" and name in _CHANGES:
        message = f"`{name}` would change the data, which templates cannot do: make a new value instead"
        return Problem(kind, name, offset, f"{message} (`a + [b]`, `a | combine(b)`, `a | sort` …)")
    if kind == "function" and name in set(filters):
        return Problem(kind, name, offset, f"`{name}` is a filter, not a function: write `value | {name}`", (name,))
    candidates = nearest(name, known)
    return Problem(kind, name, offset, f"unknown {kind} `{name}`", candidates)


def refused_statement(name: str, offset: int) -> Problem:
    message = f"the statement `{name}` is not supported; supported are `if`, `for` and `set`"
    return Problem("statement", name, offset, message)


def python_attribute(name: str, offset: int) -> Problem:
    """Report a name such as `__class__` after a dot."""
    message = f"`{name}` is a Python attribute; templates see plain data only"
    return Problem("attribute", name, offset, f"{message}; if it is a key of your data, write `['{name}']`")
