"""Check playbooks for a server, in a process of its own.

Tested in tests/server/api/test_hostile_playbooks.py.
"""

from __future__ import annotations

from noetl.server.processes.examine import Examined, examine_text
from noetl.tools import kinds
from noetl.wiring.availability import unavailable


def check(content: bytes) -> Examined:
    """Check a playbook's text against this installation."""
    return examine_text(content, kinds(), unavailable)
