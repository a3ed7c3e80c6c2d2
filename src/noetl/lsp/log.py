"""What the server leaves out of its log: refusals, which are answers to their author and no faults.

Tested in tests/acceptance/language/test_lsp.py.
"""

from __future__ import annotations

import logging

from noetl.lsp.server import Refused


def without_refusals(record: logging.LogRecord) -> bool:
    """Tell whether a record belongs into the log."""
    return not (record.exc_info and isinstance(record.exc_info[1], Refused))
