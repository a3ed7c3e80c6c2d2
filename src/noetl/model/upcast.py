"""Upcasts events of older versions, so that old logs stay readable.

Logs are never rewritten: events are upcast before they are folded. A change of what a payload means raises
`SCHEMA_VERSION` and adds an upcaster from the version before; a new event or optional field needs neither.
Tested in tests/unit/model/test_upcast.py, and on recorded histories in tests/replay/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from noetl.model.events import SCHEMA_VERSION, Event

UPCASTERS: dict[int, Callable[[Event], Event]] = {}  # version → upcaster to the next version


def upcast(
    event: Event, steps: Mapping[int, Callable[[Event], Event]] = UPCASTERS, version: int = SCHEMA_VERSION
) -> Event:
    """Return an event as this version would have written it."""
    while event.version < version:
        step = steps.get(event.version)
        event = replace(event if step is None else step(event), version=event.version + 1)
    return event
