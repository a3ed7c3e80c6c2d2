"""The doorbell of a store that has none: whoever waits looks again after a while. Tested in tests/unit/server/test_control.py."""

from __future__ import annotations

from noetl.ports import Clock


class Poll:
    """Rings nowhere and hears nothing; the time passes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def ring(self) -> None:
        """Others look by themselves."""

    async def heard(self, within_s: float) -> bool:
        await self._clock.sleep(within_s)
        return False

    async def close(self) -> None:
        """Nothing is open."""
