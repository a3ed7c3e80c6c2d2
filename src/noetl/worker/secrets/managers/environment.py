"""Provider `env`: a variable of the worker's environment.

Variables of NoETL itself that hold secrets are not given. Tested in tests/unit/worker/secrets/managers/test_local.py.
"""

from __future__ import annotations

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Access, Asked, Found


async def read(asked: Asked, access: Access) -> Found:
    value = access.environment().get(asked.name, "")
    if not value:
        raise CredentialUnavailable(
            f"the worker's environment has no variable `{asked.name}`. Set it, and start it again."
        )
    return Found(value)
