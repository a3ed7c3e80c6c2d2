"""Loops with older names of their fields.

Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

from typing import Final

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.draft import Fields, NoEquivalentError, Record, plain_name, value
from noetl.dsl.reading.nodes import MapNode

OLDER: Final = frozenset({"collection", "element", "items", "max_concurrency", "concurrency"})
_PARALLEL: Final = ("async", "parallel", "concurrent")


def lower_loop(step: Fields, record: Record) -> None:
    """Rename the fields of a loop."""
    node = step.get("loop")
    if not isinstance(node, MapNode) or (OLDER.isdisjoint(node.keys) and plain_name(node.get("mode")) != "async"):
        return
    loop = Fields(node)
    rename_fields(loop, record)
    step.put("loop", loop.built())


def rename_fields(loop: Fields, record: Record) -> None:
    for old, new in (("collection", "in"), ("items", "in"), ("element", "iterator")):
        if old in loop and new in loop:
            both = f"`{old}` and `{new}` of a loop say the same."
            raise NoEquivalentError(loop.key(old), both, "Keep one of them.")
        if old in loop:
            record.note(by.LOOP_KEYS, loop.key(old))
            loop.rename(old, new)
    bound = next((name for name in ("max_concurrency", "concurrency") if name in loop), "")
    if bound and "max_in_flight" not in loop:
        key = loop.key(bound)
        record.note(by.LOOP_LIMIT, key)
        spec = loop.get("spec")
        if "mode" not in loop and not (isinstance(spec, MapNode) and "mode" in spec):
            loop.put("mode", value("parallel", key), key)
        loop.rename(bound, "max_in_flight")
    mode = loop.get("mode")
    if mode is not None and plain_name(mode) in _PARALLEL:
        loop.put("mode", value("parallel", mode))
