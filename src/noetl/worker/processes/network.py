"""No network for a process: the kernel refuses it every new socket.

Addresses cannot be judged in a process of a task as they are in the worker, so it has all of the network or none.
Sockets of this machine are refused as well: they lead to databases and container engines. Only the standard library is
used, because children load it. Tested in tests/confinement/test_network.py.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import Final

_NO_NEW_PRIVILEGES: Final = 38
_SET_FILTER, _FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in what a filter sees of a system call
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EACCES
_OTHER_TABLE: Final = 0x40000000  # numbers of a second table of system calls, on x86-64
_MACHINES: Final = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # its mark, and the number of `socket`
_IO_URING: Final = 425  # it opens sockets without that call


def problem() -> str | None:
    """Return why this machine cannot keep a process from the network."""
    if sys.platform != "linux" or os.uname().machine not in _MACHINES:
        return "it needs Linux on x86-64 or ARM64"
    return None


def close() -> None:
    """Refuse this process and all that it starts new sockets. Raises OSError."""
    mark, socket = _MACHINES[os.uname().machine]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 0, 5, mark),  # a program of another architecture gets nothing
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 3, 0, _OTHER_TABLE),
        (_EQUAL, 2, 0, socket),
        (_EQUAL, 1, 0, _IO_URING),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    given = struct.pack("@HP", len(steps), ctypes.addressof(program))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or library.prctl(_SET_FILTER, _FILTER, given, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the process cannot give up the network")
