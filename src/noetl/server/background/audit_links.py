"""Link new audit entries to the hash chain, where the store has not.

On PostgreSQL an entry is written with its digest in the transaction of its change, and linked after the commit: a link in that
transaction would make every audited commit of every server wait for the one before it. Every server runs this task; one of
them links at a time. Tested in tests/conformance/test_audit_chain.py.
"""

from __future__ import annotations

import logging
from typing import Final

from noetl.model.errors import NoetlError, log_level
from noetl.ports import AuditTrail, Clock

_log = logging.getLogger(__name__)
_EVERY_S: Final = 0.5
_MOST: Final = 1_000  # entries of one transaction


async def link_audit(trail: AuditTrail, clock: Clock) -> None:
    """Link entries until cancelled."""
    while True:
        try:
            while await trail.link(_MOST) == _MOST:
                pass
        except NoetlError as error:
            _log.log(log_level(error), "Audit entries are linked later: %s", error)
        except Exception as error:  # noqa: BLE001 - it must not end silently
            _log.exception("Linking audit entries failed; it is tried again", exc_info=error)
        await clock.sleep(_EVERY_S)
