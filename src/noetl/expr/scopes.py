"""Results as templates see them: views that make `s.field`, `s.data.field` and `output.data.items` all work.

A scope is any mapping from root names to plain data. A root name may also hold a `Result` (what a step or task gave) or
an `Envelope` (`outcome`, `output`: the result with its status, error and meta). Only constant lookups that stand
directly on the root name follow the rules here; every other use of the name is the plain data inside.

    Result    `data` is the key `data` if there is one, else the result itself; a key that is missing is looked for in
              the result's `data` when that is a map.
    Envelope  `data` and `result` are two names of the result; a key that is missing is looked for in the result.

Which name holds which, and the order in which bare names resolve, is for the caller. Tested in
tests/unit/expr/test_scopes.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_ABSENT: Final = object()


class View:
    """Data under a root name that answers constant lookups by rules of its own."""

    __slots__ = ()

    def __getitem__(self, key: str | int) -> Any:
        raise KeyError(key)

    @property
    def plain(self) -> Any:
        """The data itself: what every use other than a constant lookup sees."""
        raise NotImplementedError


class Result(View):
    """What a step or a task gave."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def plain(self) -> Any:
        """The result itself."""
        return self.value

    def __getitem__(self, key: str | int) -> Any:
        value = self.value
        if isinstance(value, Mapping):
            found = value.get(key, _ABSENT)
            if found is not _ABSENT:
                return found
            if key == "data":
                return value
            data = value.get("data")
            if isinstance(data, Mapping):
                return data[key]
            raise KeyError(key)
        if key == "data":
            return value
        if isinstance(key, int) and isinstance(value, list | tuple | str):
            return value[key]
        raise KeyError(key)

    def __repr__(self) -> str:
        return f"Result({self.value!r})"


class Envelope(View):
    """An outcome: a result with its status, error and meta."""

    __slots__ = ("data",)

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def plain(self) -> Any:
        """The envelope as it was given."""
        return self.data

    def __getitem__(self, key: str | int) -> Any:
        data = self.data
        result = data.get("result", _ABSENT)
        if result is _ABSENT:
            result = data.get("data", _ABSENT)
        if result is not _ABSENT and key in {"data", "result"}:
            return Result(result)
        found = data.get(key, _ABSENT) if isinstance(key, str) else _ABSENT
        if found is not _ABSENT:
            return found
        if result is _ABSENT:
            raise KeyError(key)
        return Result(result)[key]

    def __repr__(self) -> str:
        return f"Envelope({self.data!r})"
