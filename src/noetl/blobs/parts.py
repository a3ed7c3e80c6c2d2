"""Selects parts of a value by JSONPath. Tested in tests/unit/blobs/test_stored.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noetl.model.errors import InvalidInput


def matches(value: Any, path: str) -> list[Any]:
    """Return all values that a JSONPath matches. Raises InvalidInput for a bad path."""
    import jsonpath  # slow to import, and rarely used

    try:
        return list(jsonpath.findall(path, value))
    except jsonpath.JSONPathError as error:
        raise InvalidInput(f"`{path}` is no JSON path: {error}") from None


def selected(value: Any, parts: Sequence[Any]) -> dict[str, Any]:
    """Return parts by `path` and `as`; several matches are a list, none is null."""
    found: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, Mapping) or "path" not in part or "as" not in part:
            raise InvalidInput(f"`select` takes parts with `path` and `as`, and one is {part!r}")
        several = matches(value, str(part["path"]))
        found[str(part["as"])] = several if len(several) > 1 else several[0] if several else None
    return found
