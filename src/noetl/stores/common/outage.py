"""Log once that a store is lost, and once that it is back.

Everything that uses the store meanwhile tries again and logs at DEBUG. Tested in tests/cluster/test_outage_log.py.
"""

from __future__ import annotations

import logging
import time

_log = logging.getLogger(__name__)


class Outage:
    """The outage of one store, if there is one now."""

    __slots__ = ("_began", "_name", "is_on")

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = 0.0
        self.is_on = False

    def begin(self, error: object) -> None:
        """Note that the store cannot be used."""
        if not self.is_on:
            self.is_on, self._began = True, time.monotonic()
            _log.warning("Lost the store %s; trying again until it is back. %s", self._name, error)

    def end(self) -> None:
        """Note that the store can be used again."""
        if self.is_on:
            self.is_on = False
            _log.info("The store %s is back after %.1f s.", self._name, time.monotonic() - self._began)
