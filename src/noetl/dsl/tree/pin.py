"""Pin a playbook: its canonical tree as bytes, and its content hash.

Equal trees have equal bytes; a pinned tree is read back without positions. Tested in tests/unit/dsl/tree/test_pin.py.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.canonical import canonical
from noetl.dsl.tree.normalize import tree
from noetl.dsl.tree.playbook import Playbook


def pinned(playbook: Playbook) -> tuple[bytes, str]:
    """Return the canonical tree as JSON, and its content hash."""
    data = msgspec.json.encode(canonical(playbook))
    return data, sha256(data).hexdigest()


@lru_cache(maxsize=64)  # shared by the control plane and the worker of one process
def unpinned(data: bytes) -> Playbook:
    """Read a pinned tree back."""
    return tree(_node(msgspec.json.decode(data)))


def _node(data: Any) -> Node:
    if isinstance(data, dict):
        return MapNode(0, 0, tuple(Entry(_scalar(key), _node(value)) for key, value in data.items()))
    if isinstance(data, list):
        return ListNode(0, 0, tuple(map(_node, data)))
    return _scalar(data)


def _scalar(value: Any) -> Scalar:
    if isinstance(value, str):
        return Scalar(0, 0, value, value, '"')
    return Scalar(0, 0, value, msgspec.json.encode(value).decode())
