"""The look-up of the web UI over tracks of scenarios, at every event."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.engine.plan.plan import Plan
from noetl.engine.queries.moment import STATES, project
from noetl.engine.queries.track import Track, extend
from noetl.engine.state.evolve import evolve
from noetl.engine.state.execution import Execution
from noetl.model.events import Event
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.cache.track_rows import packed, rows
from noetl.stores.memory.store import MemoryStore
from noetl.testing.scenario import EXECUTION, Played, Player, read_scenario
from noetl.testing.virtual_time import run
from noetl.wiring.embedded import language_kinds
from tests.scenarios.test_scenarios import FOLDERS

UI = Path(__file__).parents[2] / "ui"
VITEST = UI / "node_modules" / ".bin" / "vitest"
_EVERY = 4  # of the scenarios: the law itself is checked on all of them


def _played(folder: Path) -> tuple[Played, dict[str, Plan]]:
    scenario = read_scenario(folder)

    async def main() -> tuple[Played, dict[str, Plan]]:
        store = MemoryStore()
        plans = PlanCache(store, dict(scenario.script.get("defaults") or {"pool_capacity": 4}))
        played = await Player(scenario, store, language_kinds()).play()
        names = {str(played.events[0].payload["playbook"])} if played.events else set()
        return played, {name: await plans.get(name) for name in names}

    return run(main)


def _part(track: Track, after: int) -> dict[str, Any]:
    """Return what changed after an event, as `GET …/track` answers."""
    found: dict[str, Any] = {
        "after": after,
        "seq": track.seq,
        "t0": track.t0,
        "head_at": track.head_at,
        "every": track.every,
    }
    found |= {"times": track.times_after(after), "series": track.marks_after(after), "states": list(STATES)}
    others, plain = packed(track.spans_after(after))
    return {**found, "runs": others, "plain": plain, "dropped": track.dropped, "thinned": []}


def _moment(track: Track, state: Execution, plan: Plan | None) -> dict[str, Any]:
    found, seq = project(plan, state), state.seq
    runs: dict[str, list[str]] = {}
    for span in track.spans.values():
        if span.scheduled[0] <= seq:
            runs.setdefault(span.step, []).append(span.run)
    kept = {key: series.at(seq) for key, series in track.series.items() if key[:2] in ("a:", "r:", "d:", "l:", "f:")}
    steps = {step: word for step, word in found.steps.items() if word}
    told = {"seq": seq, "ms": track.times[seq - 1] if seq else 0, "status": found.status, "steps": steps, "runs": runs}
    return {**told, "tokens": found.tokens, "joins": found.joins, "series": kept}


def _case(plan: Plan | None, execution_id: str, events: Sequence[Event]) -> dict[str, Any] | None:
    """Return a track in two parts, and the fold at each event; None if thinned."""
    track, state, parts = Track(plan), Execution(execution_id), list[dict[str, Any]]()
    middle = len(events) // 2
    for event in events:
        extend(track, state, event)
        if event.seq == middle:
            parts.append(msgspec.to_builtins(_part(track, 0)))
    if track.thinned:
        return None  # such a series is exact only at the events that it kept
    parts.append(msgspec.to_builtins(_part(track, middle if parts else 0)))
    state = Execution(execution_id)
    moments = [_moment(track, state, plan)]
    for event in events:
        evolve(state, event)
        moments.append(_moment(track, state, plan))
    return {"parts": parts, "moments": moments, "rows": msgspec.to_builtins(rows(track.spans.values()))}


@pytest.mark.skipif(not VITEST.exists(), reason="vitest is not installed: `make ui` installs it")
def test_the_screen_looks_up_what_the_fold_has(tmp_path: Path) -> None:
    for folder in FOLDERS[::_EVERY]:
        played, plans = _played(folder)
        if not played.events:
            continue
        plan = plans[str(played.events[0].payload["playbook"])]
        case = _case(plan, EXECUTION, played.events)
        if case is not None:
            (tmp_path / f"{folder.name}.json").write_bytes(msgspec.json.encode(case))
    ran = subprocess.run(
        [str(VITEST), "run", "--root", str(UI), "--no-color"],
        env={**os.environ, "NOETL_TRACKS": str(tmp_path)}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-6_000:] + ran.stderr[-2_000:]
