"""Count refused deliveries of webhooks, and audit them at a bounded rate.

Senders need no token, so an entry for each refusal would let them fill the audit trail. The first refusal of a webhook is
written at once, later ones together: at most one entry per webhook and minute. Tested in
tests/unit/server/operations/test_refused_deliveries.py.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from noetl.model.errors import NoetlError, log_level
from noetl.ports import AuditEntry, AuditTrail, Clock

ACTION: Final = "webhook.refuse"
EVERY_MS: Final = 60_000
_log = logging.getLogger(__name__)


class RefusedDeliveries:
    """Refusals by webhook and reason that the audit trail does not hold yet."""

    def __init__(self, trail: AuditTrail, clock: Clock) -> None:
        self._trail = trail
        self._clock = clock
        self._counts: dict[str, Counter[str]] = {}
        self._last: dict[str, tuple[int, str]] = {}  # webhook → when its last entry was written, last address

    async def note(self, webhook_id: str, reason: str, address: str) -> None:
        """Count a refusal; write an entry if the webhook had none for a minute."""
        now = self._clock.now()
        written = self._last.get(webhook_id, (now - EVERY_MS, ""))[0]
        self._counts.setdefault(webhook_id, Counter())[reason] += 1
        self._last[webhook_id] = (written, address)
        if now - written >= EVERY_MS:
            await self._write(webhook_id, now)

    async def flush(self) -> None:
        """Write what was counted for webhooks whose minute is over."""
        now = self._clock.now()
        for webhook_id, (written, _) in list(self._last.items()):
            if now - written < EVERY_MS:
                continue
            if webhook_id in self._counts:
                await self._write(webhook_id, now)
            else:
                del self._last[webhook_id]

    async def run(self) -> None:
        """Flush every minute until cancelled."""
        while True:
            await self._clock.sleep(EVERY_MS / 1000)
            await self.flush()

    async def _write(self, webhook_id: str, now: int) -> None:
        reasons = self._counts.pop(webhook_id)
        address = self._last[webhook_id][1]
        self._last[webhook_id] = (now, address)
        detail = {"count": reasons.total(), "reasons": dict(reasons), "address": address}
        try:
            await self._trail.audit([AuditEntry(now, f"webhook:{webhook_id}", ACTION, webhook_id, detail)])
        except NoetlError as error:  # the sender is refused all the same
            _log.log(log_level(error), "Refused deliveries of %s are not audited: %s", webhook_id, error)
