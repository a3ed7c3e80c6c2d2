"""Refuse a local run whose credentials are missing.

Tested in tests/unit/wiring/test_preflight.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from noetl.dsl.analysis.needed_credentials import Need, missing_rows, needed_credentials
from noetl.model.errors import CredentialUnavailable, MissingCredentials

Resolve = Callable[[str], Awaitable[Mapping[str, Any]]]
_FIX = "Store each with `noetl credential put NAME`, or `export NOETL_CREDENTIAL_NAME=…` for a local run."


async def require_credentials(canonical: bytes, resolve: Resolve) -> None:
    """Raise MissingCredentials with all missing credentials of a pinned playbook."""
    missing = [need for need in needed_credentials(canonical) if not await _exists(need, resolve)]
    if missing:
        raise MissingCredentials("Credentials are missing; nothing was run.", missing_rows(missing), _FIX)


async def _exists(need: Need, resolve: Resolve) -> bool:
    try:
        await resolve(need.name)
    except KeyError:
        return False
    except CredentialUnavailable:
        pass  # it exists; the task that needs it says why it cannot be read
    return True
