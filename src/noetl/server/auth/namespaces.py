"""Roles on namespaces: where a caller has a role.

A namespace is a prefix of catalog paths that ends with a slash, such as `team-a/`. Everything that belongs to a playbook has its
path: versions, executions with their events, results and approvals, schedules and dead letters. Tested in
tests/server/auth/test_namespaces.py and tests/server/api/test_matrix.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from noetl.model.errors import InvalidInput

Reach = tuple[str, ...] | None  # namespaces in which a caller has a role; None: everywhere
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*/?")
_MOST: Final = 100
_LONGEST: Final = 200


def namespaces_of(given: Iterable[str]) -> tuple[str, ...]:
    """Return namespaces, each with a slash at its end. Raises InvalidInput."""
    found = dict.fromkeys(_namespace(one) for one in given)
    if len(found) > _MOST:
        raise InvalidInput(f"More than {_MOST} namespaces. Use fewer, shorter prefixes.")
    return tuple(found)


def _namespace(given: str) -> str:
    if len(given) > _LONGEST or _NAMESPACE.fullmatch(given) is None:
        raise InvalidInput(
            f"{given[:40]!r} is no namespace. Write the beginning of catalog paths, such as `team-a/` or `team-a/etl/`."
        )
    return given if given.endswith("/") else given + "/"


def is_within(path: str, reach: Reach) -> bool:
    """Return whether a catalog path is in one of the namespaces."""
    return reach is None or path.startswith(reach)
