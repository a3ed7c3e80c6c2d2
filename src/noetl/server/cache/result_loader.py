"""Load the stored results that a decision needs, and store long lists.

Results are loaded up to a size. A result that cannot be loaded is passed to the decision as an exception with the
reason; if the store is unavailable, the sequencer retries. Tested in tests/unit/server/sequencer/test_needs.py.
"""

from __future__ import annotations

from typing import Any, Final

from noetl.blobs import manifests
from noetl.engine.decision.needs_load import NeedsLoad
from noetl.model.errors import BadReference, StoreUnavailable
from noetl.ports import Blobs, Clock

LOAD_MAX_BYTES: Final = 64 * 1024 * 1024


class ResultLoader:
    """Large results of the control plane; without a blob store, lists stay inline."""

    def __init__(self, blobs: Blobs | None, clock: Clock, most: int = LOAD_MAX_BYTES) -> None:
        self._blobs = blobs
        self._clock = clock
        self._most = most

    async def bring(self, needs: NeedsLoad) -> dict[str, Any]:
        """Return the needed results by address. Raises StoreUnavailable: retry."""
        found: dict[str, Any] = {}
        for reference in needs.loads:
            found[str(reference["ref"])] = await self._load(reference)
        for ref, listed in needs.puts.items():
            found[ref] = None if self._blobs is None else await self._put(self._blobs, ref, listed, self._clock.now())
        return found

    async def _load(self, reference: Any) -> Any:
        if self._blobs is None:
            return BadReference(f"this control plane cannot read stored results, and {reference['ref']} is one")
        try:
            manifests.refuse_larger(reference, self._most)
            return await manifests.value(self._blobs, reference, self._clock.now())
        except BadReference as error:
            if isinstance(error.__cause__, StoreUnavailable | OSError):
                raise StoreUnavailable(str(error)) from error
            return error

    @staticmethod
    async def _put(blobs: Blobs, ref: str, listed: Any, now: int) -> dict[str, Any]:
        try:
            return await manifests.put_list(blobs, ref, listed, now)
        except OSError as error:
            raise StoreUnavailable(f"the list {ref} cannot be stored now: {error}") from error
