"""Slow down wrong tokens, by the address that they come from.

The answer to a wrong token waits, longer after each one of the same address. A valid token is looked up first, so it never
waits, whatever others send from its address. Few answers wait at once: the next ones are refused and their connections
close, so that waiting answers cannot use up the requests of the server. Tested in tests/server/auth/test_failed_attempts.py.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from ipaddress import ip_address, ip_network

from noetl.ports import Clock
from noetl.server.problems import Refusal

_FIRST_S = 0.1  # doubles with each failure
_LONGEST_S = 3.2
_DOUBLINGS = 5
_FORGOTTEN_MS = 60_000  # after the last failure of an address
_MOST_ADDRESSES = 4_096  # whose failures are counted
_MOST_OF_ONE = 16  # answers that wait at once, of one address
_MOST = 256  # of all


class FailedAttempts:
    """Count wrong tokens by address, and delay their answers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, int]] = OrderedDict()  # how many, and when the last one was
        self._waiting: Counter[str] = Counter()

    async def delay(self, address: str) -> None:
        """Wait because of one more wrong token. Raises Refusal if too many wait already."""
        place = _network(address)
        wait_s = self._count(place)
        if self._waiting[place] >= _MOST_OF_ONE or self._waiting.total() >= _MOST:
            raise Refusal(
                429,
                "too-many-failures",
                "Too many requests with wrong tokens wait for their answers.",
                fix="Send a valid token.",
                retry_after_s=_LONGEST_S,
                headers={"Connection": "close"},
            )
        self._waiting[place] += 1
        try:
            await self._clock.sleep(wait_s)
        finally:
            self._waiting[place] -= 1
            if not self._waiting[place]:
                del self._waiting[place]

    def _count(self, place: str) -> float:
        """Count a failure; return how long its answer waits."""
        now = self._clock.now()
        count, last = self._failures.pop(place, (0, now))
        if now - last > _FORGOTTEN_MS:
            count = 0
        self._failures[place] = (count + 1, now)
        if len(self._failures) > _MOST_ADDRESSES:
            self._failures.popitem(last=False)
        return float(min(_FIRST_S * 2 ** min(count, _DOUBLINGS), _LONGEST_S))


def _network(address: str) -> str:
    """Return the address, or the network of an IPv6 address: its owner has all of it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str(ip_network((found, 64), strict=False)) if found.version == 6 else address
