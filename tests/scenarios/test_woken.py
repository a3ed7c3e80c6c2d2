"""What ends on the server when it is woken ends as it would on a worker.

Every scenario with such an end is played again with all of them on a worker: only the log differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from noetl.engine.routing import suspend
from noetl.engine.state.execution import Execution
from noetl.testing.scenario import Played, read_scenario
from tests.scenarios.test_scenarios import FOLDERS, played

WOKEN = [folder for folder in FOLDERS if "- {step.woken:" in (folder / "events.golden.yaml").read_text()]
_TIMES = ("woke_at", "started_at")


def test_there_are_such_scenarios() -> None:
    assert len(WOKEN) >= 20


@pytest.mark.parametrize("folder", WOKEN, ids=[folder.name for folder in WOKEN])
def test_it_ends_as_on_a_worker(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = read_scenario(folder)
    here = played(scenario, "memory", tmp_path)
    monkeypatch.setattr(suspend, "_finished", lambda *_: None)
    there = played(scenario, "memory", tmp_path)
    assert any(event.event_type == "step.woken" for events in _logs(here) for event in events)
    assert not any(event.event_type == "step.woken" for events in _logs(there) for event in events)
    assert _shown(here.live) == _shown(there.live)


def _logs(found: Played) -> list[Any]:
    return [found.events, *(events for _, events in found.children)]


def _shown(state: Execution | None) -> Any:
    assert state is not None
    ended = {name: (one.run_id, one.status, _timeless(one.result), one.error) for name, one in state.ended.items()}
    open_runs = {name: (run.phase, run.loop and run.loop.stats()) for name, run in state.runs.items()}
    whole = (state.status, _timeless(state.result), state.error, _timeless(state.ctx), state.counts, state.signals)
    return (*whole, ended, open_runs)


def _timeless(value: Any) -> Any:
    """Return a value without times: a worker has its own clock."""
    if isinstance(value, Mapping):
        return {name: None if name in _TIMES else _timeless(one) for name, one in value.items()}
    return [_timeless(one) for one in value] if isinstance(value, list) else value
