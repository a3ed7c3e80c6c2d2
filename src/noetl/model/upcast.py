"""Brings events of an older version up to this one, so that old logs stay readable.

Logs are never rewritten: an event is changed on its way into the fold. A change of what a payload means raises
`SCHEMA_VERSION` and adds the step from the version before; a new event or a new field that may be missing needs neither.
Tested in tests/unit/model/test_upcast.py, and on recorded histories in tests/replay/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from noetl.model.events import SCHEMA_VERSION, Event

UPCASTERS: dict[int, Callable[[Event], Event]] = {}  # version → what makes an event of the next one of it


def upcast(
    event: Event, steps: Mapping[int, Callable[[Event], Event]] = UPCASTERS, version: int = SCHEMA_VERSION
) -> Event:
    """Give an event as this version would have written it; one of this version or a newer one is given back as it is."""
    while event.version < version:
        step = steps.get(event.version)
        event = replace(event if step is None else step(event), version=event.version + 1)
    return event
