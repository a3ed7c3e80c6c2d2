"""The composition root: hands concrete parts to those who know only their shape.

Today that is the tool kinds, which the language takes as data. Nothing is decided here. Tested in tests/tools/test_wiring.py.
"""

from __future__ import annotations

from noetl.dsl.kinds import Kinds
from noetl.tools import kinds


def language_kinds() -> Kinds:
    """Give the tool kinds that a playbook may use; each is loaded when it is first looked at."""
    return kinds()


def kind_problems() -> tuple[str, ...]:
    """Tell, after the kinds were looked at, which ones of installed packages cannot be used, and why: one sentence each."""
    return kinds().problems
