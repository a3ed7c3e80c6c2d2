"""Files that a command is given: found, read, and their troubles told in one line each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

SUFFIXES = (".yaml", ".yml", ".json")
TESTS = (".test.yaml", ".test.yml")  # files of tests beside playbooks
_MOST_BYTES = 64 * 1024 * 1024


class FileTrouble(Struct, frozen=True):
    """Why something could not be looked at."""

    message: str
    fatal: bool = False


def playbook_files(names: list[str], troubles: list[FileTrouble]) -> Iterator[str]:
    """Give the files to look at: as named, and the playbooks below each folder, in order; among several, no tests."""
    for name in names:
        path = Path(name)
        if name.endswith(TESTS):
            if len(names) == 1:
                troubles.append(FileTrouble(f"{name}: this is a file of tests; `noetl test` plays it", fatal=True))
            continue
        if name == "-" or not path.is_dir():
            yield name
            continue
        found = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and looks_like_playbook(file))
        if not found:
            troubles.append(FileTrouble(f"{name}: no playbook below this folder ({', '.join(SUFFIXES)})", fatal=True))
        yield from map(str, found)


def looks_like_playbook(path: Path) -> bool:
    """Tell whether a file below a folder is a playbook, by its first lines: it names the language's version."""
    try:
        with path.open("rb") as file:
            return not path.name.endswith(TESTS) and b"noetl.io/" in file.read(4096)
    except OSError:
        return False


def read_playbook(name: str, troubles: list[FileTrouble]) -> bytes | None:
    """Give the bytes of a file or of stdin; on failure a trouble is noted and None comes back."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(_MOST_BYTES)
        with Path(name).open("rb") as file:
            return file.read(_MOST_BYTES)
    except FileNotFoundError:
        reason = "there is no such file; check the path"
    except IsADirectoryError:
        reason = "this is a folder"
    except PermissionError:
        reason = "it may not be read; check its permissions"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    troubles.append(FileTrouble(f"{name}: {reason}", fatal=True))
    return None
