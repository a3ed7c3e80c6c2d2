"""Resolves what a step's templates read of `keychain`, when the work begins and on the worker only.

An entry is the stored credential of its name, or of the name that its `credential` or `auth` says. One that cannot be found is
left out: whoever reads it is told so by its template. Tested in tests/unit/worker/test_keychain.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from noetl.dsl.playbook import Keychain

Resolve = Callable[[str], Awaitable[Mapping[str, Any]]]


async def resolved(
    declared: Iterable[Keychain], reads: Iterable[tuple[str | int, ...]], resolve: Resolve
) -> dict[str, Mapping[str, Any]]:
    """Give the declared entries that are read, with their values."""
    paths = [path for path in reads if path[0] == "keychain"]
    whole = any(len(path) == 1 for path in paths)
    names = {path[1] for path in paths if len(path) > 1}
    found: dict[str, Mapping[str, Any]] = {}
    for entry in declared:
        if whole or entry.name in names:
            try:
                found[entry.name] = await resolve(_source(entry))
            except KeyError:
                continue
    return found


def _source(entry: Keychain) -> str:
    for field in ("credential", "auth"):
        named = entry.fields.get(field)
        if named is not None and isinstance(named.data, str) and "{" not in named.data:
            return named.data
    return entry.name
