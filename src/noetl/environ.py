"""Environment of this process, with its own secrets kept out of sight.

A command takes its secrets out of the environment before it does anything: they are in neither `os.environ`, which
children inherit, nor in `/proc/PID/environ` or `/proc/PID/cmdline`, which other processes of the user read. Tested in
tests/unit/test_environ.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

_SECRET: Final = re.compile(
    r"NOETL_\w*(CREDENTIAL|KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|DSN|DATABASE|DB_URL|STORE|HEADERS)"
)
_PASSWORD: Final = re.compile(r"\w://[^/\s:@]*:[^/\s@]+@")  # in an address
_OPTIONS: Final = (b"--token", b"--key", b"--data")  # whose values are secrets
_FIELDS: Final = 45  # of /proc/self/stat, after the state: where the arguments begin and end, and the environment
_taken: dict[str, str] = {}


def variables() -> Mapping[str, str]:
    """Return the variables of this process, with the secrets that were taken out."""
    return {**os.environ, **_taken} if _taken else os.environ


def public_variables() -> dict[str, str]:
    """Return the environment without the secrets of NoETL, for other processes."""
    return {name: value for name, value in os.environ.items() if not _is_secret(name, value)}


def take_secrets() -> None:
    """Take the secrets of this process out of its environment and command line."""
    found = {name: value for name, value in os.environ.items() if _is_secret(name, value)}
    _taken.update(found)
    for name in found:
        del os.environ[name]
    _erase({name.encode() for name in found})


def _is_secret(name: str, value: str) -> bool:
    return name.startswith("NOETL_") and bool(_SECRET.match(name) or _PASSWORD.search(value))


def _erase(names: set[bytes]) -> None:
    """Overwrite the memory from which the kernel shows variables and arguments."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        with open("/proc/self/cmdline", "rb") as shown:
            arguments = shown.read()
    except OSError:
        return  # no such system: nothing is shown there
    secret = list(_secret_arguments(arguments))
    if not names and not secret:
        return
    import ctypes

    first, _, begin, end = (int(field) for field in fields[_FIELDS : _FIELDS + 4])
    if first:
        for at, length in secret:
            ctypes.memset(first + at, ord("x"), length)
    at = begin
    for entry in ctypes.string_at(begin, end - begin).split(b"\0") if begin else ():
        if entry.partition(b"=")[0] in names:
            ctypes.memset(at, 0, len(entry))
        at += len(entry) + 1


def _secret_arguments(arguments: bytes) -> Iterator[tuple[int, int]]:
    """Yield position and length of the secrets on a command line."""
    at, follows = 0, False
    for word in arguments.split(b"\0"):
        option, equals, value = word.partition(b"=")
        if follows or _PASSWORD.search(word.decode("utf-8", "replace")):
            yield at, len(word)
        elif equals and option in _OPTIONS:
            yield at + len(option) + 1, len(value)
        follows = word in _OPTIONS
        at += len(word) + 1
