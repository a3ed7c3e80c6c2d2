"""Views of results: make `s.field`, `s.data.field` and `output.data.items` work.

A scope maps root names to plain data. A root name may also hold a `Result` (of a step or task) or an `Envelope`
(`outcome`, `output`: the result with its status, error and meta). These rules apply only to constant lookups directly on
the root name; every other use sees the plain data.

    Result    `data` is the key `data` if present, else the result itself; a missing key is looked up in the result's
              `data` if that is a map. The result of a step with one task that has no label of its own also has
              `results.<step>_task`, as a step with more tasks has.
    Envelope  `data` and `result` both name the result; a missing key is looked up in the result.

Tested in tests/unit/expr/runtime/test_result_views.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_ABSENT: Final = object()


class View:
    """Data under a root name with its own rules for constant lookups."""

    __slots__ = ()

    def __getitem__(self, key: str | int) -> Any:
        raise KeyError(key)

    @property
    def plain(self) -> Any:
        """The data itself, for every use other than a constant lookup."""
        raise NotImplementedError


class Result(View):
    """Result of a step or task; `label` is that of a step's only task."""

    __slots__ = ("label", "value")

    def __init__(self, value: Any, label: str = "") -> None:
        self.value = value
        self.label = label

    @property
    def plain(self) -> Any:
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
            if isinstance(data, Mapping) and key in data:
                return data[key]
        elif key == "data":
            return value
        elif isinstance(key, int) and isinstance(value, list | tuple | str):
            return value[key]
        return self._by_label(key)

    def _by_label(self, key: str | int) -> Any:
        """Return the result under `results` and its label; it is kept once."""
        if self.label and key == "results":
            return {self.label: self.value}
        if self.label and key == self.label and not (isinstance(self.value, Mapping) and "results" in self.value):
            return self.value
        raise KeyError(key)

    def __repr__(self) -> str:
        return f"Result({self.value!r})"


class Envelope(View):
    """Outcome: a result with its status, error and meta."""

    __slots__ = ("data",)

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def plain(self) -> Any:
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
