"""Sandbox of a task: what its process or thread may read and write, availability.

`landlock`: the kernel restricts writes to named folders, hides files, and denies it to signal or inspect processes
outside. It restricts a thread as well as a process. `bwrap`: a child has separate namespaces on top, created by the
program of that name. Only the standard library is used, because children load it. Networks stay open. Tested in
tests/unit/worker/processes/test_sandbox.py.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

MODES: Final = ("none", "landlock", "bwrap")
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_CAPABILITIES: Final = 0x20080522  # the version of the call
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_FIRST: Final = (1 << 13) - 1  # every right on files that the first version knows
_LATER: Final = {2: 1 << 13, 3: _TRUNCATE}  # rights of later versions
_TICK_NS: Final = 20_000_000  # the time of a change of a folder is known as exactly as this
_SCOPES: Final = 3  # abstract sockets and signals, from version 6 on
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def problem(mode: str) -> str | None:
    """Return why this machine cannot create a sandbox; None if it can."""
    if mode != "none" and landlock_version() < 1:  # also with bwrap: it confines what runs inside the worker
        return "this kernel has no Landlock (Linux 5.13 and later have it, where it is switched on)"
    if mode == "bwrap":
        program = shutil.which("bwrap")
        if program is None:
            return "the program bwrap (bubblewrap) is not installed"
        tried = subprocess.run(
            [*_bwrap(program, [tempfile.gettempdir()], ()), "true"], capture_output=True, text=True, check=False
        )
        if tried.returncode != 0:
            return f"bwrap cannot make namespaces here: {tried.stderr.strip()}"
    return None


def strongest() -> str:
    """Return the strongest sandbox that this machine has; `none` if it has none."""
    return next(mode for mode in reversed(MODES) if problem(mode) is None)


def landlock_version() -> int:
    """Return the Landlock version of the kernel; 0 if it has none."""
    return max(0, _call(_CREATE, None, 0, _VERSION)) if sys.platform == "linux" else 0


def enter(writable: Sequence[str], hidden: Sequence[str], shown: Sequence[str] = ()) -> None:
    """Confine this thread and all that it starts, permanently. Raises OSError.

    A process is confined by its only thread. `shown` are files that stay readable below a hidden folder.
    """
    version = landlock_version()
    rights = _FIRST
    for since, right in _LATER.items():
        rights |= right if version >= since else 0
    attributes = struct.pack("=QQQ", rights, 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _checked(_call(_CREATE, attributes, size, 0))
    try:
        _allow(rules, "/", _READ_DIR)
        for path in (*visible(hidden), *shown):
            _allow(rules, path, _EXECUTE | _READ_FILE)  # rights on files, which a folder can have too
        for folder in writable:
            _allow(rules, folder, rights if os.path.isdir(folder) else rights & _ON_FILES)
        for device in _DEVICES:
            _allow(rules, device, (_READ_FILE | _WRITE_FILE | _TRUNCATE) & rights)
        give_up_privileges()
        _checked(_call(_RESTRICT, rules, 0))
    finally:
        os.close(rules)


def visible(hidden: Sequence[str]) -> Iterator[str]:
    """Yield the files and folders that together are everything but the hidden ones.

    Landlock has no deny rules. Each child of a worker does this, so it is written for speed.
    """
    places, listed = {os.path.realpath(one) for one in hidden}, listed_folders(hidden)
    if "/" in places:
        return iter(())
    return _shown("/", places, listed) if listed else iter("/")


def listed_folders(hidden: Sequence[str]) -> set[str]:
    """Return the folders in which something is hidden: their files are listed."""
    return {str(folder) for one in hidden for folder in Path(os.path.realpath(one)).parents}


def changed_at(folders: Iterable[str]) -> tuple[int, ...]:
    """Return when folders changed: a process from before does not see new files."""
    found = []
    for folder in folders:
        with suppress(OSError):
            found.append(os.stat(folder).st_mtime_ns)
    return tuple(found)


def seen_at(folders: Iterable[str]) -> tuple[int, ...]:
    """Return when folders changed, for what is confined now.

    A change at this moment would look like this state, which is then equal to no later one.
    """
    found = changed_at(folders)
    return (0,) if found and time.time_ns() - max(found) < _TICK_NS else found


def give_up_privileges() -> None:
    """Drop the capabilities of this process; its programs cannot gain any."""
    library = _library()
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the process cannot give up gaining privileges")
    if library.capset(struct.pack("=Ii", _CAPABILITIES, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "the process cannot give up its capabilities")


def inside_bwrap(argv: Sequence[str], writable: Sequence[str], hidden: Sequence[str]) -> list[str]:
    """Return the command that runs another one in separate namespaces."""
    return [*_bwrap(shutil.which("bwrap") or "bwrap", writable, hidden), *argv]


def _bwrap(program: str, writable: Sequence[str], hidden: Sequence[str]) -> list[str]:
    made = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev"]
    made += ["--proc", "/proc"]
    for path in hidden:
        if os.path.isdir(path):
            made += ["--tmpfs", path]
        elif os.path.exists(path):
            made += ["--ro-bind", "/dev/null", path]
    for folder in writable:
        made += ["--bind", folder, folder]
    return [*made, "--"]


def _shown(folder: str, hidden: Collection[str], listed: Collection[str]) -> Iterator[str]:
    """Yield what is in a folder above hidden paths, but for these."""
    with suppress(OSError):  # no folder, or none that this user may list: nothing in it is shown
        for entry in os.scandir(folder):
            path = entry.path
            if path in hidden or entry.is_symlink():
                continue
            if path in listed:
                yield from _shown(path, hidden, listed)
            else:
                yield path


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it is gone, or out of this user's reach
        return
    try:
        _checked(_add_rule()(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", rights, beneath), 0))
    finally:
        os.close(beneath)


def _call(number: int, *arguments: int | bytes | None) -> int:
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    found: int = _library().syscall(ctypes.c_long(number), *given)
    return found


@cache
def _add_rule() -> Callable[..., int]:
    """Return the system call that adds a rule, with its types: a fifth of the time."""
    kind = ctypes.CFUNCTYPE(
        *(ctypes.c_long, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint), use_errno=True
    )
    return kind(("syscall", _library()))


@cache
def _library() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _checked(found: int) -> int:
    if found < 0:
        raise OSError(ctypes.get_errno(), f"Landlock refuses: {os.strerror(ctypes.get_errno())}")
    return found
