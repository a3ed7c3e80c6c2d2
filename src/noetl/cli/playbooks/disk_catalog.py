"""Catalog of the playbooks on disk: what `kind: playbook` can call by path.

A path is the `metadata.path` of a playbook below the current folder, or a file relative to the caller. The folder is searched
once, on the first lookup; symbolic links are followed, and no folder is searched twice. Tested in
tests/acceptance/language/test_validate_cli.py and executions/test_run_children.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path

from noetl.cli.arguments.files import SUFFIXES, read_head

_PATH = re.compile(rb"""["']?\bpath["']?\s*:\s*["']?([^\s"'},#]+)""")
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})
_MAX_FILES = 5_000
_MAX_FOLDERS = 10_000  # a link may lead anywhere


class DiskCatalog(Collection[str]):
    """Playbooks below a folder, and files relative to the calling playbook."""

    def __init__(self, folder: Path, caller: Path) -> None:
        self._folder = folder
        self._caller = caller

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        return self.is_beside(path) or path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def file(self, path: str) -> Path | None:
        """Return a playbook's file: relative to the caller, else by catalog path."""
        return (self._caller / path).resolve() if self.is_beside(path) else self._paths.get(path)

    def is_beside(self, path: str) -> bool:
        """Return whether a path is a file relative to the caller's folder."""
        return (self._caller / path).is_file()

    @cached_property
    def _paths(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for file in _files(self._folder):
            path = catalog_path(file)
            if path is not None:
                found.setdefault(path, file.resolve())
        return found


def _files(folder: Path) -> Iterator[Path]:
    found = (Path(place, name) for place, names in _folders(folder) for name in names if name.endswith(SUFFIXES))
    return islice(found, _MAX_FILES)


def _folders(folder: Path) -> Iterator[tuple[str, list[str]]]:
    seen: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        try:
            here = os.stat(place)
        except OSError:  # deleted meanwhile
            folders.clear()
            continue
        if (here.st_dev, here.st_ino) in seen or len(seen) >= _MAX_FOLDERS:
            folders.clear()
            continue
        seen.add((here.st_dev, here.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        yield place, sorted(names)


def catalog_path(file: Path) -> str | None:
    """Return the `metadata.path` in a playbook's text, or None."""
    head = read_head(file)
    found = _PATH.search(head) if b"noetl.io/" in head else None
    return found.group(1).decode("utf-8", "replace") if found else None
