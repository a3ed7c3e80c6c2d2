"""Remove the folders of tasks, however deep or closed they are.

Only the standard library is used, because children load it. Tested in tests/unit/worker/processes/test_folders.py.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_Identity = tuple[int, int]


def remove(path: str) -> None:
    """Remove a folder with everything in it, as far as this user may; raises nothing."""
    path = os.path.abspath(path)
    with suppress(OSError):
        walk = _Walk(os.path.dirname(path))
        try:
            walk.remove(os.path.basename(path))
        finally:
            walk.close()


def empty(path: str) -> None:
    """Remove everything in a folder, as far as this user may; raises nothing."""
    with suppress(OSError):
        with os.scandir(path) as entries:
            if next(entries, None) is None:
                return
        walk = _Walk(path)
        try:
            for name in walk.unlinked():
                walk.remove(name)
        finally:
            walk.close()


class _Walk:
    """One open folder, moved down and up: no recursion, no long paths, no links."""

    def __init__(self, path: str) -> None:
        self._here = os.open(path, _FOLDER & ~os.O_NOFOLLOW)

    def close(self) -> None:
        os.close(self._here)

    def remove(self, name: str) -> None:
        """Remove a folder in this one. Raises OSError if it is moved meanwhile."""
        levels: list[tuple[_Identity, list[str]]] = [(self._identity(), [name])]
        while True:
            identity, names = levels[-1]
            if names and self._enter(names[-1]):
                levels.append((self._identity(), self.unlinked()))
            elif names:
                names.pop()  # no folder, or one that this user may not open
            elif len(levels) == 1:
                return
            else:
                levels.pop()
                identity, names = levels[-1]
                self._move("..")
                if self._identity() != identity:
                    raise FileNotFoundError("the folder was moved")
                with suppress(OSError):
                    os.rmdir(names.pop(), dir_fd=self._here)

    def unlinked(self) -> list[str]:
        """Remove the files of this folder; return the names of its folders."""
        found: list[str] = []
        with suppress(OSError):
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._here)
            try:
                with os.scandir(readable) as entries:
                    for entry in entries:
                        with suppress(OSError):
                            if entry.is_dir(follow_symlinks=False):
                                found.append(entry.name)
                            else:
                                os.unlink(entry.name, dir_fd=self._here)
            finally:
                os.close(readable)
        return found

    def _enter(self, name: str) -> bool:
        try:
            self._move(name)
        except OSError:
            return False
        with suppress(OSError):
            os.chmod(f"/proc/self/fd/{self._here}", 0o700)  # the task may have closed it
        return True

    def _move(self, name: str) -> None:
        there = os.open(name, _FOLDER, dir_fd=self._here)
        os.close(self._here)
        self._here = there

    def _identity(self) -> _Identity:
        about = os.fstat(self._here)
        return about.st_dev, about.st_ino
