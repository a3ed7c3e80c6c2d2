"""Find the level that a misplaced key belongs to.

The grammar itself answers: the nearest level below, or else the nearest enclosing one, that has the key. Keys that many levels
have are ambiguous and have no answer. Tested in tests/unit/dsl/checking/test_shape.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from noetl.dsl.grammar.titles import TITLES
from noetl.dsl.grammar.types import Choice, Field, Level, LevelOf, ListOf, MapOf, OneOf, Type
from noetl.dsl.reading.nodes import Node, Scalar

_VAGUE = frozenset(
    {"kind", "name", "path", "key", "as", "scope", "desc", "description", "labels", "version", "spec", "prefix", "bucket",
     "total", "read", "connect", "tools", "features", "tags", "author", "plugin", "sink", "dispatch", "policy", "result",
     "store", "select", "auth", "credential", "max_attempts", "input", "args"}
)  # fmt: skip
# The enclosing level where the grammar allows several: a task is also an entry of the workbook.
_AROUND = {
    "metadata": "playbook",
    "task": "step",
    "task_spec": "task",
    "output": "task",
    "task_then": "task_rule",
    "arc": "next",
    "admit_then": "admit_rule",
}
# Ambiguous keys that mean one thing only at these levels.
_CLEAR = {
    "playbook": ("name", "path", "version", "description", "labels", "tags", "author"),
    "step": ("policy", "auth", "credential"),
    "task": ("policy",),
    "loop": ("policy",),
    "next": ("args", "input"),
    "executor": ("policy",),
}
_HOLDERS = {"step": "the step", "task": "the task", "arc": "the arc", "task_rule": "the rule", "admit_rule": "the rule"}
_NO_HOME = frozenset({("admit_policy", "mode")})  # read there, without an effect
_DEPTH = 5


class Place(NamedTuple):
    """The level that a key belongs to, and the path of keys below it."""

    level: str
    path: str
    outside: bool = False

    @property
    def stands_for(self) -> str:
        """The field that the key stands in for; empty for an enclosing level."""
        return "" if self.outside else self.path.partition(".")[0].removesuffix("[]")

    def __str__(self) -> str:
        under = f"in an item of `{self.path[:-2]}`" if self.path.endswith("[]") else f"under `{self.path}`"
        if not self.outside:
            return under
        if self.level == "playbook":
            return f"{under} at the root" if self.path else "at the root of the playbook"
        holder = _HOLDERS.get(self.level)
        if self.path:
            return f"{under} of {holder or TITLES[self.level]}"
        return f"on {holder}" if holder else f"in {TITLES[self.level].removeprefix('a ')}"


class Places:
    """Where misplaced keys belong; the ways between levels are computed once."""

    def __init__(self, levels: Mapping[str, Level]) -> None:
        self._levels = levels
        self._known = frozenset(name for level in levels.values() for name in level.names())
        self._children = {name: tuple(_children(level)) for name, level in levels.items()}
        self._outer = {name: self._around(name) for name in levels}

    def find(self, level: str, key: str, value: Node) -> Place | None:
        """Return where a key with this value belongs, seen from a level without it."""
        if level not in self._levels or key not in self._known:
            return None
        if key not in _VAGUE or key in _CLEAR.get(level, ()):
            below = self._below(level, key, value)
            if below is not None:
                return Place(level, below)
        if key in _VAGUE:
            return None
        outer = self._outer[level]
        while outer is not None:
            if _takes(self._levels[outer].field(key), value):
                return Place(outer, "", outside=True)
            below = self._below(outer, key, value)
            if below is not None:
                return Place(outer, below, outside=True)
            outer = self._outer[outer]
        return None

    def _around(self, level: str) -> str | None:
        """Return the one enclosing level; None at the root and where there are several."""
        if level in _AROUND:
            return _AROUND[level]
        holders = {name for name, children in self._children.items() for below, _ in children if below == level}
        return holders.pop() if len(holders) == 1 else None

    def _below(self, level: str, key: str, value: Node) -> str | None:
        """Return the path to the nearest level below that has the key."""
        pending: deque[tuple[str, tuple[str, ...]]] = deque([(level, ())])
        seen = {level}
        while pending:
            name, path = pending.popleft()
            if path and (name, key) not in _NO_HOME and _takes(self._levels[name].field(key), value):
                return ".".join(path)
            if len(path) < _DEPTH:
                for below, step in self._children[name]:
                    if below in self._levels and below not in seen:
                        seen.add(below)
                        pending.append((below, (*path, step)))
        return None


def _takes(field: Field | None, value: Node) -> bool:
    """Return whether a field exists and, if it is a choice, accepts the value."""
    if field is None:
        return False
    return not isinstance(field.type, Choice) or (isinstance(value, Scalar) and value.value in field.type.words)


def _children(level: Level) -> Iterator[tuple[str, str]]:
    for field in level.fields:
        if field.name == "workbook":  # its tasks have the same fields as the tasks of steps
            continue
        for below, suffix in _levels_of(field.type, ""):
            yield below, field.name + suffix


def _levels_of(kind: Type, suffix: str) -> Iterator[tuple[str, str]]:
    match kind:
        case LevelOf(name):
            yield name, suffix
        case ListOf(item):
            yield from _levels_of(item, suffix + "[]")
        case MapOf(inner):
            yield from _levels_of(inner, suffix)
        case OneOf(options):
            for option in options:
                yield from _levels_of(option, suffix)
