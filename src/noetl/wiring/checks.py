"""Check playbooks for a server, in a process of its own.

Tested in tests/server/api/test_hostile_playbooks.py and tests/server/api/test_language.py.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from noetl.server.processes.examine import Examined, examine_text
from noetl.server.processes.language import Feature, Text
from noetl.tools import kinds
from noetl.wiring.availability import unavailable

_KEPT_TEXTS: Final = 32
_LONGEST_KEPT: Final = 200_000


def check(content: bytes, tolerant: bool = False) -> Examined:
    """Check a playbook's text; `tolerant` leaves out unknown keys."""
    return examine_text(content, kinds(), unavailable, tolerant)


def ask_language(feature: Feature, text: str, offset: int = 0, name: str | None = None) -> Any:
    """Answer a question about a text; the last texts are kept with their checks."""
    read = _text if len(text) <= _LONGEST_KEPT else _text.__wrapped__
    return read(text).answer(feature, offset, name)


@lru_cache(_KEPT_TEXTS)
def _text(text: str) -> Text:
    return Text(text, kinds(), unavailable)
