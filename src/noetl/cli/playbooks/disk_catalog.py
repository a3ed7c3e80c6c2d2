"""The playbooks on disk, as a catalog: what `kind: playbook` may call by path.

A path is known when it is the `metadata.path` of a playbook below the current folder, or a file beside the caller. The
folder is searched once, on the first question; folders that are links are searched too, and no folder twice. Tested in
tests/acceptance/test_validate_cli.py and test_run_children.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path

from noetl.cli.common.files import SUFFIXES

_PATH = re.compile(rb"""["']?\bpath["']?\s*:\s*["']?([^\s"'},#]+)""")
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})
_MOST_FILES = 5_000
_MOST_FOLDERS = 10_000  # a link may lead anywhere


class DiskCatalog(Collection[str]):
    """Paths of the playbooks below a folder, and files relative to the calling playbook."""

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
        """Give the file of a playbook: the one beside the caller, else the first with that path."""
        return (self._caller / path).resolve() if self.is_beside(path) else self._paths.get(path)

    def is_beside(self, path: str) -> bool:
        """Tell whether a path is that of a file, from the folder of the caller."""
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
    return islice(found, _MOST_FILES)


def _folders(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Give the folders below one with the names of their files, each once whatever links lead to it."""
    seen: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        try:
            here = os.stat(place)
        except OSError:  # it went away meanwhile
            folders.clear()
            continue
        if (here.st_dev, here.st_ino) in seen or len(seen) >= _MOST_FOLDERS:
            folders.clear()
            continue
        seen.add((here.st_dev, here.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        yield place, sorted(names)


def catalog_path(file: Path) -> str | None:
    """Give the path that a playbook's own text names."""
    try:
        with file.open("rb") as opened:
            head = opened.read(4096)
    except OSError:
        return None
    found = _PATH.search(head) if b"noetl.io/" in head else None
    return found.group(1).decode("utf-8", "replace") if found else None
