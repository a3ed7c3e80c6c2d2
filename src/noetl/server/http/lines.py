"""Open connections of a server: how many, from where, and for how long.

One timer looks at all of them every second. It counts its own ticks, so that a process that was frozen blames no client.
Tested in tests/server/http/test_bounds.py and test_readers.py.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from ipaddress import IPv6Address, ip_address
from typing import Any

from noetl.settings import HttpSettings

_log = logging.getLogger(__name__)
LINGER_S = 30  # in which what a refused client still sends is discarded
MIN_RATE = 1024  # bytes per second of a client that sends a body or reads an answer
_SPARE_FILES = 256  # open files that connections leave to the rest of the process


class Phase(IntEnum):
    """What a connection is doing."""

    NEW = 0  # no byte of a request has arrived
    HEAD = 1  # path and headers arrive
    BUSY = 2  # the application serves a request, or a session
    IDLE = 3  # the next request may come
    REST = 4  # the request was answered before all of it arrived
    CLOSING = 5  # the last answer is sent; what still arrives is discarded


_YIELDS = frozenset(Phase) - {Phase.BUSY}  # phases that end for a new connection at the limit


class Line(asyncio.Transport):
    """Transport of one connection, which outlives the upgrade to a WebSocket."""

    def __init__(self, transport: asyncio.Transport, bounds: HttpSettings) -> None:
        self.address = _network(transport)
        self.phase = Phase.NEW
        self._transport = transport
        self._on_close: Callable[[], None] = self.hang_up
        self._on_late: Callable[[], None] = self.abort
        self._is_over = False  # nothing more may be written
        self._patience = {
            Phase.NEW: bounds.head_s,
            Phase.HEAD: bounds.head_s,
            Phase.REST: LINGER_S,
            Phase.CLOSING: LINGER_S,
        }
        self._reader_s = bounds.reader_s
        self._ticks = 0  # in this phase
        self._written = 0
        self._behind = 0  # ticks since which written bytes wait for the reader
        self._read = 0  # bytes that the reader had taken then

    def attend(self, on_close: Callable[[], None], on_late: Callable[[], None]) -> None:
        """Set what closes the connection, and what ends it when its phase took too long."""
        self._on_close, self._on_late = on_close, on_late

    def enter(self, phase: Phase) -> None:
        self.phase = phase
        self._ticks = 0

    def write(self, data: Any) -> None:
        if not self._is_over:
            self._written += len(data)
            self._transport.write(data)

    def close(self) -> None:
        if self.phase is Phase.CLOSING:
            self.hang_up()
        elif not self._transport.is_closing():
            self._on_close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self.phase is Phase.CLOSING or self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def hang_up(self) -> None:
        """Close at once, after what was written."""
        self._is_over = True
        self._transport.close()

    def half_close(self) -> None:
        """Send the end of the stream, and go on reading.

        Closing while data arrives would reset the connection, and the client would lose the answer.
        """
        self.enter(Phase.CLOSING)
        self._is_over = True
        if not self._transport.is_closing():
            self._transport.write_eof()

    def tick(self) -> None:
        """Count a second; end the connection if its client takes too long."""
        self._ticks += 1
        waiting = self._transport.get_write_buffer_size()
        if not waiting:
            self._behind = 0
        elif self._behind == 0:
            self._behind, self._read = 1, self._written - waiting
        elif self._behind < self._reader_s:
            self._behind += 1
        elif self._written - waiting - self._read < MIN_RATE * self._reader_s:
            self._transport.abort()
            return
        else:
            self._behind = 0
        if self._ticks > self._patience.get(self.phase, self._ticks):
            self._on_late()


class Lines:
    """All connections of a server, by address."""

    def __init__(self, bounds: HttpSettings) -> None:
        files = _files(bounds.connections + _SPARE_FILES)
        self._most = min(bounds.connections, max(files // 2, files - _SPARE_FILES))
        if self._most < bounds.connections:
            _log.warning("At most %d connections: %d files may be open (`ulimit -n`).", self._most, files)
        self._most_of_one = max(1, bounds.per_address * self._most // bounds.connections)
        self._by_address: dict[str, dict[Line, None]] = {}
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, line: Line) -> bool:
        """Count a new connection; return False if there is no room."""
        mine = self._by_address.get(line.address, {})
        if len(mine) >= self._most_of_one:
            if not self._make_room([mine]):
                return False
        elif self._count >= self._most:
            crowds = sorted(self._by_address.values(), key=len, reverse=True)
            if not self._make_room(crowds):
                return False
        self._by_address.setdefault(line.address, mine)[line] = None
        self._count += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(1, self._tick)
        return True

    def leave(self, line: Line) -> None:
        """Forget a connection; a second time does nothing."""
        mine = self._by_address.get(line.address, {})
        if line in mine:
            del mine[line]
            self._count -= 1
            if not mine:
                del self._by_address[line.address]

    def _make_room(self, crowds: Iterable[dict[Line, None]]) -> bool:
        """Close the oldest connection that serves nothing."""
        found = next((line for crowd in crowds for line in crowd if line.phase in _YIELDS), None)
        if found is None:
            return False
        self.leave(found)
        found.abort()
        return True

    def _tick(self) -> None:
        for line in [line for mine in self._by_address.values() for line in mine]:
            line.tick()
        self._timer = asyncio.get_running_loop().call_later(1, self._tick) if self._count else None


def _files(wanted: int) -> int:
    """Raise the number of files that this process may open; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft < wanted:
        with suppress(OSError, ValueError):
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft


def _network(transport: asyncio.Transport) -> str:
    """Return the address of a client; of IPv6 the network that one client has."""
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple):
        return ""
    address = ip_address(peer[0].partition("%")[0])
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or address.packed[:8].hex())
