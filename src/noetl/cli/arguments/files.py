"""Find and read the files that a command line names.

Tested in tests/acceptance/language/test_validate_cli.py.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from noetl.model.errors import InvalidInput

SUFFIXES = (".yaml", ".yml", ".json")
TESTS = (".test.yaml", ".test.yml")
_MAX_BYTES = 64 * 1024 * 1024
_HEAD_BYTES = 4096
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)  # Windows has neither


class FileProblem(Struct, frozen=True):
    """Why a file could not be used."""

    message: str
    fatal: bool = False


def playbook_files(names: list[str], problems: list[FileProblem]) -> Iterator[str]:
    """Yield the named files, and the playbooks in named folders except test files."""
    for name in names:
        path = Path(name)
        if name.endswith(TESTS):
            if len(names) == 1:
                problems.append(FileProblem(f"{name}: this is a test file; run it with `noetl test`", fatal=True))
            continue
        if name == "-" or not path.is_dir():
            yield name
            continue
        found = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and _is_playbook(file))
        if not found:
            problems.append(FileProblem(f"{name}: no playbooks in this folder ({', '.join(SUFFIXES)})", fatal=True))
        yield from map(str, found)


def _is_playbook(path: Path) -> bool:
    return not path.name.endswith(TESTS) and b"noetl.io/" in read_head(path)


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file; none of a pipe, a device, or one not readable.

    A pipe would hold up its reader until something is written.
    """
    try:
        opened = os.open(path, os.O_RDONLY | _AT_ONCE)
        with os.fdopen(opened, "rb") as file:
            return file.read(_HEAD_BYTES) if stat.S_ISREG(os.fstat(opened).st_mode) else b""
    except OSError:
        return b""


def read_file(name: str, problems: list[FileProblem]) -> bytes | None:
    """Return the content of a file or stdin (`-`), or None with a new problem."""
    try:
        return load_file(name)
    except InvalidInput as error:
        problems.append(FileProblem(str(error), fatal=True))
    return None


def load_file(name: str) -> bytes:
    """Return the content of a file, or of stdin for `-`. Raises InvalidInput."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(_MAX_BYTES)
        with Path(name).open("rb") as file:
            return file.read(_MAX_BYTES)
    except FileNotFoundError:
        reason = "no such file; check the path"
    except IsADirectoryError:
        reason = "this is a folder"
    except PermissionError:
        reason = "permission denied; check the file's permissions"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise InvalidInput(f"{name}: {reason}")
