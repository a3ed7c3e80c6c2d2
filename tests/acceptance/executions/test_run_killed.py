"""Runs killed inside a parallel loop, a child playbook or a compensation.

What the log knew of before the kill is never done again; what was in flight is done again under the same key.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.running import NOTE, Folder, Summary, summary, until

STEPS = 8
ITEMS = 40
WIDTH = 4
MOMENTS = [0, 1, *(pytest.param(seed, marks=pytest.mark.chaos) for seed in range(2, 20))]


def chain(names: list[str], last: str, **more: str) -> str:
    """Return the steps of a chain; each leaves its idempotency key in a file."""
    steps = ""
    for name, after in zip(names, [*names[1:], last], strict=True):
        steps += f"- step: {name}\n  tool:{NOTE}  next: {after}\n"
        steps += f"  compensate: {more[name]}\n" if name in more else ""
    return steps


def killed(folder: Folder, file: str, enough: int, moment: float) -> tuple[str, set[str]]:
    """Kill a run after `enough` effects; return the execution and its logged keys."""
    with folder.started("run", file) as process:
        until(lambda: len(folder.lines("effects.txt")) > enough, f"effect {enough}")
        time.sleep(moment)  # the moment of the kill is what is varied here
        process.send_signal(signal.SIGKILL)
        process.wait()
    rows = [json.loads(line) for line in folder.call("runs", "--json").out.splitlines()]
    (top,) = (row["execution_id"] for row in rows if not row.get("parent"))
    known: set[str] = set()
    for row in rows:
        known |= {key for event in folder.events(row["execution_id"]) if (key := done(event)) is not None}
    return top, known


def done(event: dict[str, Any]) -> str | None:
    """Return the key of the work that an event records as done."""
    if event["event_type"] == "task.done":
        return str(event["task_run_id"])
    if event["event_type"] == "loop.iteration.done":
        return f"{event['execution_id']}:each:{event['iteration']}:each_task"
    return None


def resumed(folder: Folder, execution_id: str, known: set[str], most_again: int) -> tuple[Summary, Counter[str]]:
    ran = summary(folder.call("resume", execution_id, "--json"))
    effects = Counter(folder.lines("effects.txt"))
    again = {key for key, count in effects.items() if count > 1}
    assert not again & known, "what was recorded was done again"
    assert sum(count - 1 for count in effects.values()) <= most_again, effects
    assert all(sum(counts.values()) <= 1 for counts in ran.data["steps"].values()), ran.data["steps"]
    return ran, effects


Chance = Callable[[int], tuple[int, float]]


@pytest.fixture
def chance(seed: int) -> Chance:
    drawn = random.Random(seed)
    return lambda most: (drawn.randrange(most), drawn.random() * 0.02)


@pytest.mark.parametrize("seed", MOMENTS)
def test_inside_a_parallel_loop(folder: Folder, chance: Chance) -> None:
    width = f"mode: parallel, max_in_flight: {WIDTH}"
    each = f"- step: each\n  loop: {{ in: '{{{{ range({ITEMS}) | list }}}}', iterator: n, spec: {{ {width} }} }}\n"
    file = folder.playbook(each + f"  tool:{NOTE}", name="loop")
    execution_id, known = killed(folder, file, *chance(ITEMS - 10))
    ran, effects = resumed(folder, execution_id, known, ITEMS)
    assert (ran.code, ran.status) == (0, "completed")
    assert ran.result["stats"] == {"total": ITEMS, "succeeded": ITEMS, "failed": 0, "skipped": 0}
    assert set(effects) == {f"{execution_id}:each:{index}:each_task" for index in range(ITEMS)}


@pytest.mark.parametrize("seed", MOMENTS)
def test_inside_a_child(folder: Folder, chance: Chance) -> None:
    names = [f"s{number}" for number in range(STEPS)]
    folder.playbook(chain(names, "out") + "- step: out\n  tool: { kind: noop, result: end }\n", name="child")
    file = folder.playbook("- step: call\n  tool: { kind: playbook, path: test/child }", name="parent")
    execution_id, known = killed(folder, file, *chance(STEPS - 2))
    ran, effects = resumed(folder, execution_id, known, 1)
    assert (ran.code, ran.status, ran.result) == (0, "completed", "end")
    [child] = [found for found in folder.ids() if found != execution_id]
    assert set(effects) == {f"{child}:{name}:{name}_task" for name in names}


@pytest.mark.parametrize("seed", MOMENTS)
def test_while_it_undoes_what_it_did(folder: Folder, chance: Chance) -> None:
    names = [f"s{number}" for number in range(STEPS)]
    steps = chain(names, "bad", **{name: f"undo_{name}" for name in names})
    steps += "- step: bad\n  tool: { kind: python, code: 'raise FatalError(\"no\")' }\n"
    steps += "".join(f"- step: undo_{name}\n  tool:{NOTE}" for name in names)
    file = folder.playbook(steps, name="saga", policy={"rollback": "on_fail"})
    enough, moment = chance(STEPS - 2)
    execution_id, known = killed(folder, file, STEPS + enough, moment)
    ran, effects = resumed(folder, execution_id, known, 1)
    assert (ran.code, ran.status) == (1, "failed")
    undone = [f"undo_{name}" for name in reversed(names)]
    assert set(effects) == {f"{execution_id}:{name}:{name}_task" for name in names + undone}
    first = list(dict.fromkeys(line.split(":")[1] for line in folder.lines("effects.txt")))
    assert first == names + undone, "it is undone newest first"
    assert folder.events(execution_id, "--type", "playbook.finished")[0]["payload"]["compensated"] is True
