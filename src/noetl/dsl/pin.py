"""Pins a playbook: its canonical tree as bytes, and the content hash that executions refer to.

Equal trees have equal bytes, whatever spelling they were written in. Tested in tests/unit/dsl/test_pin.py.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from noetl.dsl.canonical import canonical
from noetl.dsl.normalize import normalize
from noetl.dsl.parse import parse
from noetl.dsl.playbook import Playbook


def pinned(playbook: Playbook) -> tuple[bytes, str]:
    """Give the canonical tree as JSON, and its content hash."""
    data = msgspec.json.encode(canonical(playbook))
    return data, sha256(data).hexdigest()


def unpinned(data: bytes) -> Playbook:
    """Read a pinned tree back; it was checked when it was pinned."""
    return normalize(parse(data, "<pinned>"))
