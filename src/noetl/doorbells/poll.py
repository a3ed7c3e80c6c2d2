"""Doorbell by polling. Tested in tests/unit/server/test_control_plane.py."""

from __future__ import annotations

from noetl.ports import Clock


class Poll:
    """Sends no signal and receives none; waiting is a sleep."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def ring(self) -> None:
        """Do nothing: the other processes poll."""

    async def heard(self, within_s: float) -> bool:
        await self._clock.sleep(within_s)
        return False

    async def close(self) -> None:
        """Do nothing: nothing is open."""
