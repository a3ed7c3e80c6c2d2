"""Rows that steps and loops take in the log, with real parts."""

from __future__ import annotations

import pytest

from tests.unit.worker.system import system

pytestmark = pytest.mark.asyncio

STEPS = 20
ITEMS = 400


async def test_a_step_of_one_task_takes_at_most_seven_rows() -> None:
    steps = [
        f"- step: s{number}\n  tool: {{kind: noop}}\n" + (f"  next: s{number + 1}\n" if number + 1 < STEPS else "")
        for number in range(STEPS)
    ]
    async with system() as run:
        execution = await run.start("".join(steps))
        assert (await run.ended(execution))["status"] == "completed"
        events = await run.store.read(execution)
    beside = [event for event in events if event.entity_type in ("execution", "workflow")]
    assert len(beside) == 7
    assert len(events) - len(beside) <= 7 * STEPS


async def test_an_item_takes_one_row_and_a_range_three() -> None:
    async with system() as run:
        execution = await run.start(
            f"""
            - step: s
              loop: {{in: "{{{{ range({ITEMS}) }}}}", iterator: i, spec: {{mode: parallel}}}}
              tool: {{kind: noop}}
            """
        )
        row = await run.ended(execution)
        events = await run.store.read(execution)
    assert row["result"]["stats"] == {"total": ITEMS, "succeeded": ITEMS, "failed": 0, "skipped": 0}
    ranges = sum(event.event_type == "loop.iteration.scheduled" for event in events)
    items = [event for event in events if event.iteration is not None]
    assert len(items) == ITEMS
    beside = [event for event in events if event.entity_type in ("execution", "workflow")]
    own = 7  # token.created, step.scheduled, step.started, loop.started, loop.done, step.done, next.evaluated
    assert len(events) - len(items) - len(beside) <= 3 * ranges + own
