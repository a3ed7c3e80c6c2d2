"""Upcasting: each step is taken once, in order, and nothing else changes."""

from __future__ import annotations

from msgspec.structs import replace

from noetl.engine.state.evolve import evolve, fold
from noetl.engine.state.execution import Execution
from noetl.model import upcast as module
from noetl.model.events import SCHEMA_VERSION, Event
from noetl.model.upcast import UPCASTERS, upcast

OLD = Event("e", "1", 1, "ctx.patched", 5, payload={"set": {"x": 1}}, version=0)


def renamed(event: Event) -> Event:
    return replace(event, payload={"writes": event.payload["set"]})


def marked(event: Event) -> Event:
    return replace(event, payload={**event.payload, "by": "?"})


def test_every_step_between_the_versions_is_taken_in_order() -> None:
    found = upcast(OLD, {1: marked, 0: renamed}, 2)
    assert (found.payload, found.version) == ({"writes": {"x": 1}, "by": "?"}, 2)
    assert upcast(OLD, {0: renamed}, 2).payload == {"writes": {"x": 1}}  # nothing changed for this event in version 2
    assert replace(found, payload=OLD.payload, version=0) == OLD


def test_events_of_this_version_and_newer_ones_stay_as_they_are() -> None:
    for version in (2, 3):
        event = replace(OLD, version=version)
        assert upcast(event, {0: renamed, 1: marked}, 2) is event


def test_the_table_has_a_place_for_no_version_that_is_still_to_come() -> None:
    assert all(0 < version < SCHEMA_VERSION for version in UPCASTERS)


def test_a_log_is_folded_as_if_it_were_written_today() -> None:
    before = dict(module.UPCASTERS)
    module.UPCASTERS[0] = renamed
    try:
        assert fold("1", [OLD]).ctx == {"x": 1}
        assert evolve(Execution("1"), OLD).ctx == {"x": 1}
    finally:
        module.UPCASTERS.clear()
        module.UPCASTERS.update(before)
