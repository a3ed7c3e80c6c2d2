"""Finds the route of a request by its method and path: by one look where the path has no parameters, else by a few.

Where several fit, a path without parameters comes first, then the one that was declared first. A parameter is one whole part
of a path. Says nothing of what it does not find: the application behind does. Tested in tests/server/test_paths.py.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

Served = TypeVar("Served")
_NO_PARAMETERS: Final[Mapping[str, str]] = {}


class Paths(Generic[Served]):
    """What is served, by method and path."""

    def __init__(self, routes: Iterable[tuple[str, str, Served]]) -> None:
        self._plain: dict[tuple[str, str], tuple[Served, Mapping[str, str]]] = {}
        # By method and number of parts; then by the places of the parameters; then by the parts that are fixed.
        self._shapes: dict[
            tuple[str, int], dict[tuple[int, ...], dict[tuple[str, ...], tuple[Served, tuple[str, ...]]]]
        ] = {}
        for method, path, served in routes:
            parts = path.split("/")
            names = {place: part[1:-1] for place, part in enumerate(parts) if part.startswith("{")}
            if names:
                known = self._shapes.setdefault((method, len(parts)), {}).setdefault(tuple(names), {})
                known.setdefault(_fixed(parts, names), (served, tuple(names.values())))
            else:
                self._plain.setdefault((method, path), (served, _NO_PARAMETERS))

    def find(self, method: str, path: str) -> tuple[Served, Mapping[str, str]] | None:
        """Give what is served there, and the parameters of its path."""
        found = self._plain.get((method, path))
        if found is not None:
            return found
        parts = path.split("/")
        for places, known in self._shapes.get((method, len(parts)), {}).items():
            match = known.get(_fixed(parts, places))
            given = [parts[place] for place in places]
            if match is not None and all(given):
                return match[0], dict(zip(match[1], given, strict=True))
        return None


def _fixed(parts: Sequence[str], places: Container[int]) -> tuple[str, ...]:
    return tuple([part for place, part in enumerate(parts) if place not in places])
