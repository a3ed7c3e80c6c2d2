"""The law of tracks on every recorded history, at every event."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.engine.plan.plan import Plan, plan
from noetl.testing.scenario import read_playbook
from tests.replay.record import history
from tests.replay.test_replay import HISTORIES
from tests.scenarios.test_scenarios import HERE as SCENARIOS
from tests.unit.engine.queries.track_law import holds


def plan_of(path: Path, catalog_path: str) -> Plan:
    """Return the plan of a history; its scenario may have changed since."""
    folder = SCENARIOS / path.name.partition(".")[0]
    texts = [one.read_text() for one in sorted(folder.glob("*.yaml")) if one.name not in _NO_PLAYBOOKS]
    books = [read_playbook(text) for text in texts]
    named = [book for book in books if book.path == catalog_path]
    return plan((named or books)[0], "hash")


_NO_PLAYBOOKS = ("outcomes.yaml", "events.golden.yaml")


@pytest.mark.parametrize("path", HISTORIES, ids=[path.stem for path in HISTORIES])
def test_a_lookup_equals_the_projection_at_every_event(path: Path) -> None:
    head, events = history(path)
    holds(plan_of(path, str(events[0].payload["path"])), head["execution_id"], events)
    holds(None, head["execution_id"], events)
