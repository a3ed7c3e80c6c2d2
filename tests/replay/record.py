"""Record histories: logs of scenarios and their results, never rewritten.

python -m tests.replay.record loop_cursor join_in_cycle
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import Execution
from noetl.model.events import SCHEMA_VERSION, Event
from noetl.testing.scenario import EXECUTION, read_scenario
from tests.scenarios.test_scenarios import HERE as SCENARIOS
from tests.scenarios.test_scenarios import played

FOLDER = Path(__file__).parent


def told(state: Execution) -> dict[str, Any]:
    """Return what every later version must read from a history."""
    found = {
        "status": state.status,
        "result": state.result,
        "ctx": state.ctx,
        "workload": state.workload,
        "steps": state.counts,
        "error": state.error,
        "compensated": state.compensated,
        "seq": state.seq,
        "tokens": sorted(state.tokens),
        "runs": sorted(state.runs),
        "ended": {name: one.status for name, one in state.ended.items()},
        "timers": sorted(state.timers),
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    return plain


def record(name: str) -> None:
    """Write down what a scenario leaves, its children included."""
    found = played(read_scenario(SCENARIOS / name), "memory", FOLDER)
    for number, (execution_id, events) in enumerate([(EXECUTION, found.events), *found.children]):
        path = FOLDER / (f"{name}.jsonl" if number == 0 else f"{name}.{number}.jsonl")
        if path.exists():
            continue
        head = {"execution_id": execution_id, "version": SCHEMA_VERSION, "told": told(fold(execution_id, events))}
        lines = [head, *({**msgspec.to_builtins(event), "version": event.version} for event in events)]
        path.write_bytes(b"\n".join(msgspec.json.encode(line) for line in lines) + b"\n")


def history(path: Path) -> tuple[dict[str, Any], list[Event]]:
    """Read a recorded history: what it came to, and its events."""
    first, *rest = path.read_bytes().splitlines()
    return msgspec.json.decode(first), [msgspec.json.decode(line, type=Event) for line in rest]


if __name__ == "__main__":
    for asked in sys.argv[1:]:
        record(asked)
