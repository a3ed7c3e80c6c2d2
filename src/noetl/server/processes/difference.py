"""Compare two texts line by line, in a process of its own.

Two texts can be made so that it takes very long. Tested in tests/server/api/test_catalog.py and test_compare.py.
"""

from __future__ import annotations

from difflib import unified_diff
from typing import Final

from noetl.server.processes.side import OutOfMemory, SideProcesses, TimedOut


def unified(before: bytes, after: bytes, old: str, new: str) -> str:
    """Return the unified diff of two texts; `old` and `new` are their names."""
    was, now = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (before, after))
    return "".join(unified_diff(was, now, old, new))


UNIFIED: Final = f"{__name__}:{unified.__name__}"


async def difference(
    side: SideProcesses, before: bytes, after: bytes, names: tuple[str, str], seconds: float
) -> str | None:
    """Return the unified diff of two texts, or None if that takes too long."""
    try:
        found: str = await side.run(UNIFIED, before, after, *names, deadline_s=seconds)
    except (TimedOut, OutOfMemory):
        return None
    return found
