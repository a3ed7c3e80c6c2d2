"""How often a process searches for garbage: each search stops all else for a moment.

Tested in tests/acceptance/test_validate_cli.py and test_run.py, by every command that uses it.
"""

from __future__ import annotations

import gc
from typing import Final

_WORKING: Final = 20_000  # objects made since the last search: of a process that works for long
CHECKING: Final = 100_000  # of one that keeps nearly all that it makes until its report is printed
_OLDER: Final = (20, 50)  # searches of the youngest, and of the middle, before older objects are searched


def settle(after: int = _WORKING) -> None:
    """Search for garbage less often, and never in what is loaded by now."""
    gc.freeze()
    gc.set_threshold(after, *_OLDER)
