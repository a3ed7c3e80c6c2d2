"""A process beside a server: it calls one pure function at a time.

It reads orders from its standard input and answers on its standard output: first an empty frame once the function is
loaded, then the result. An order without arguments only loads the function. It ends with the server, when it idles
for long, and when a call has left it large. Tested in
tests/unit/server/processes/test_side.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import resource
import select
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

LENGTH: Final = struct.Struct(">Q")
_IDLE_S: Final = 300.0
_KEPT_BYTES: Final = 192 << 20  # a larger process ends after its answer
_FULL_COLLECTION: Final = 16  # calls; in between, what a function keeps from call to call is not searched for garbage
_SET_DEATH_SIGNAL: Final = 1  # of prctl
_NICE: Final = 5  # a third of the server's share of a busy processor


def serve(memory: int) -> None:
    """Answer orders until there are no more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _yield_processor()
    orders, answers, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)  # a function that prints must not write into the answers
    gc.disable()  # the process is short-lived or idle: memory is collected between calls
    calls = 0
    while (order := _read(orders)) is not None:
        answer, is_kept = _answer(answers, order)
        _write(answers, answer)
        del order, answer
        calls += 1
        gc.collect(2 if calls % _FULL_COLLECTION == 0 else 1)
        if not is_kept or _size() > _KEPT_BYTES:
            return


def _yield_processor() -> None:
    """Go behind the event loop of the server where both want the processor."""
    os.nice(_NICE)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:
        file.write(str(_NICE))  # where the kernel shares by session first


def _answer(answers: int, order: bytes) -> tuple[bytes, bool]:
    """Call the function; return the answer, and whether another call may follow."""
    try:
        name, arguments, deadline_s = pickle.loads(order)  # noqa: S301 - it is the server that writes it
        function = _loaded(name)
        _write(answers, b"")
        # The kernel ends the process even inside one long call of C code.
        signal.setitimer(signal.ITIMER_PROF, deadline_s)
        answer = pickle.dumps(("result", None if arguments is None else function(*arguments)), 5)
    except MemoryError:
        return pickle.dumps(("memory", None), 5), False
    except Exception:  # noqa: BLE001 - whatever a function raises, the server reports it
        return pickle.dumps(("error", traceback.format_exc()), 5), False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return answer, True


def _loaded(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return found


def _read(orders: int) -> bytes | None:
    """Return the next order; None if the server is gone or has none for long."""
    if not select.select([orders], [], [], _IDLE_S)[0]:
        return None
    head = _exactly(orders, LENGTH.size)
    return None if head is None else _exactly(orders, LENGTH.unpack(head)[0])


def _exactly(orders: int, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(orders, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(answers: int, body: bytes) -> None:
    rest = memoryview(LENGTH.pack(len(body)) + body)
    while rest:
        rest = rest[os.write(answers, rest) :]


def _size() -> int:
    """Return the resident memory of this process; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


if __name__ == "__main__":
    serve(int(sys.argv[1]))
