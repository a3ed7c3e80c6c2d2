"""The budget of modules per folder, and the folders that are exempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase

MODULES = 12
# Folders in which every file is the same kind of thing: knowing one is knowing all.
SAME_KIND = {
    "src/noetl/cli/admin": "one command per file",
    "src/noetl/cli/executions": "one command per file",
    "src/noetl/cli/language": "one command per file",
    "src/noetl/cli/servers": "one command per file",
    "src/noetl/dsl/rules/*": "one rule of the checker per file",
    "src/noetl/expr/builtins/filters": "one topic of filters per file",
    "src/noetl/server/api": "one noun of the API per file",
    "src/noetl/server/api/*": "one noun of the API per file",
    "src/noetl/tools": "one tool kind per file",
}


def crowded(paths: Iterable[str]) -> list[str]:
    """Return the folders with more modules than allowed, `__init__.py` not counted."""
    folders = Counter(path.rpartition("/")[0] for path in paths if not path.endswith("/__init__.py"))
    return sorted(
        folder
        for folder, count in folders.items()
        if count > MODULES and not any(fnmatchcase(folder, pattern) for pattern in SAME_KIND)
    )
