"""Look up keys and indexes in plain data; compile constant paths into closures.

Never reaches a Python attribute: a map answers to its keys, a list or string to its indexes, a date to the names in its
table, everything else to nothing. Tested in tests/unit/expr/runtime/test_lookup.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from noetl.expr.runtime.result_views import View
from noetl.expr.runtime.undefined import Path, Undefined

Scope = Mapping[str, Any]
# Raised by `scope[a][b]` on plain data for a missing value. A view raises KeyError.
_MISSES: Final = (KeyError, TypeError, IndexError)
UNNAMED: Final[Path] = ("(value)",)
_INDEXED: Final = (list, tuple, str)

_DATE: Final = {name: attrgetter(name) for name in ("year", "month", "day")}
_DATETIME: Final = _DATE | {name: attrgetter(name) for name in ("hour", "minute", "second", "microsecond")}
_TIMEDELTA: Final = {name: attrgetter(name) for name in ("days", "seconds", "microseconds")}
_TIMES: Final[Mapping[type, Mapping[str, Callable[[Any], Any]]]] = {
    datetime: _DATETIME, date: _DATE, timedelta: _TIMEDELTA,
}  # fmt: skip


class Group(tuple[Any, Any]):
    """One group of `groupby`: a pair with `grouper` and `list`; a list in results."""

    __slots__ = ()


_GROUP: Final = {"grouper": 0, "list": 1}


def lookup(base: Any, key: Any, path: Path = UNNAMED) -> Any:
    """Return `base[key]`, or an `Undefined`; `path` is the path of `base`."""
    if type(base) is dict or isinstance(base, Mapping):
        if type(key) is not str and isinstance(key, tuple):  # hashing it visits everything that it contains
            return Undefined((*path, _element(key)), len(path), base)
        try:
            return base[key]
        except (KeyError, TypeError):
            return Undefined((*path, _element(key)), len(path), base)
    if isinstance(base, Undefined):
        return base.below(key)
    if isinstance(base, _INDEXED) and isinstance(key, int):
        try:
            return base[key]
        except IndexError:
            return Undefined((*path, key), len(path), base)
    if isinstance(base, Group) and isinstance(key, str) and key in _GROUP:
        return base[_GROUP[key]]
    field = _TIMES.get(type(base), {}).get(key) if isinstance(key, str) else None
    if field is not None:
        return field(base)
    return Undefined((*path, _element(key)), len(path), base)


def _element(key: Any) -> str | int:
    return key if isinstance(key, str | int) else f"({type(key).__name__})"


def walk(base: Any, keys: Path, path: Path = UNNAMED) -> Any:
    """Look up `keys` one after the other."""
    for index, key in enumerate(keys):
        base = base.below(key) if isinstance(base, Undefined) else lookup(base, key, path + keys[:index])
    return base


def read_path(scope: Scope, path: Path) -> Any:
    """Return the value at `path` by the rules of views; `path_reader`'s slow path."""
    root, keys = str(path[0]), path[1:]
    try:
        value = scope[root]
    except KeyError:
        return Undefined(path, 0, scope)
    done = 0
    while done < len(keys) and type(value) is dict:
        if keys[done] not in value:
            return Undefined(path, done + 1, value)
        value = value[keys[done]]
        done += 1
    while done < len(keys) and isinstance(value, View):
        try:
            value = value[keys[done]]
        except (KeyError, IndexError):
            return Undefined(path, done + 1, value.plain)
        done += 1
    if isinstance(value, View):
        return value.plain
    return walk(value, keys[done:], path[: done + 1])


def path_reader(path: Path) -> Callable[[Scope], Any]:
    """Return a closure that reads `path`, with a fast path for plain data."""
    root, keys = str(path[0]), path[1:]
    if not keys:
        return _root_reader(root)
    if len(keys) == 1:
        return _field_reader(root, keys[0])
    if len(keys) == 2:
        return _nested_reader(root, keys[0], keys[1])

    def read(scope: Scope) -> Any:
        try:
            value = scope[root]
            for key in keys:
                value = value[key]
        except _MISSES:
            return read_path(scope, path)
        return value

    return read


def _root_reader(root: str) -> Callable[[Scope], Any]:
    def read(scope: Scope) -> Any:
        try:
            value = scope[root]
        except KeyError:
            return Undefined((root,), 0, scope)
        return value.plain if isinstance(value, View) else value

    return read


def _field_reader(root: str, key: str | int) -> Callable[[Scope], Any]:
    path = (root, key)

    def read(scope: Scope) -> Any:
        try:
            value = scope[root][key]
        except _MISSES:
            return read_path(scope, path)
        return value.plain if isinstance(value, View) else value

    return read


def _nested_reader(root: str, first: str | int, second: str | int) -> Callable[[Scope], Any]:
    path = (root, first, second)

    def read(scope: Scope) -> Any:
        try:
            return scope[root][first][second]
        except _MISSES:
            return read_path(scope, path)

    return read
