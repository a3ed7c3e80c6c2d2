"""A long evaluation of a worker gives way to everything else on the event loop."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from noetl.expr import Budget, BudgetExceeded, compile_template
from noetl.expr.runtime.running import RUNNING, SLICE
from noetl.expr.sql.statements import render_sql
from noetl.model.messages import Cancel
from noetl.worker.cooperative import Cooperation
from tests.unit.worker.system import system

pytestmark = pytest.mark.asyncio

LOOP = "{% for o in range(20) %}{% for k in range(1000) %}{% if k > 5000 %}x{% endif %}{% endfor %}{% endfor %}"
CALLER: ContextVar[str] = ContextVar("caller", default="")


@asynccontextmanager
async def turns() -> AsyncIterator[list[Any]]:
    """Yield what others saw as the evaluation in progress, at each of their turns."""
    seen: list[Any] = []

    async def other() -> None:
        while True:
            seen.append(RUNNING.budget)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    yield seen
    task.cancel()


def evaluate(source: str, budget: Budget) -> Any:
    return compile_template(source).evaluate({}, budget=budget)


async def test_others_have_a_turn_at_every_slice() -> None:
    budget = Budget()
    async with turns() as seen:
        assert await Cooperation().run(evaluate, LOOP, budget) == ""
    assert budget.operations_used > 5 * SLICE
    assert len(seen) >= budget.operations_used // SLICE - 1
    assert set(seen) == {None}  # what is put aside is not in progress


async def test_every_slice_has_a_number_so_that_the_watchdog_times_slices() -> None:
    seen = []

    async def other() -> None:
        while True:
            seen.append(RUNNING.number)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await Cooperation().run(evaluate, LOOP, Budget())
    task.cancel()
    assert len(set(seen)) > 10


async def test_a_slice_is_shared_by_the_templates_of_a_call() -> None:
    short = "{% for k in range(200) %}{% if k > 5000 %}x{% endif %}{% endfor %}"
    alone = Budget()
    assert evaluate(short, alone) == ""
    assert alone.operations_used < SLICE

    def many() -> None:
        for _ in range(100):
            evaluate(short, Budget())

    async with turns() as seen:
        await Cooperation().run(many)
    assert len(seen) >= 100 * alone.operations_used // SLICE - 1


async def test_sql_is_rendered_in_slices_too() -> None:
    async with turns() as seen:
        assert await Cooperation().run(render_sql, compile_template("SELECT 1" + LOOP), {}) == "SELECT 1"
    assert len(seen) > 5


async def test_the_budget_is_the_same_in_slices() -> None:
    whole, divided = Budget(), Budget()
    evaluate(LOOP, whole)
    await Cooperation().run(evaluate, LOOP, divided)
    assert divided.operations_used == whole.operations_used
    for source in (LOOP, "{{ range(90000) | list | sort | length }}"):
        most = SLICE * 2
        refused = pytest.raises(BudgetExceeded, match=f"more than the {most:,} operations")
        with refused:
            evaluate(source, Budget(operations=most))
        with refused:
            await Cooperation().run(evaluate, source, Budget(operations=most))


async def test_a_short_call_never_gives_way() -> None:
    async with turns() as seen:
        assert await Cooperation().run(evaluate, "{{ 1 + 1 }}", Budget()) == 2
        assert seen == []


async def test_a_value_is_not_kept() -> None:
    class Large:
        """Something that a weak reference can name."""

    cooperation = Cooperation()
    seen = weakref.ref(await cooperation.run(Large))
    assert seen() is None


async def test_an_error_reaches_the_caller() -> None:
    def fail() -> None:
        evaluate(LOOP, Budget())
        raise LookupError("after it")

    with pytest.raises(LookupError, match="after it"):
        await Cooperation().run(fail)


async def test_a_cancelled_call_is_unwound_at_its_slice() -> None:
    budget, ended = Budget(), []

    def call() -> None:
        try:
            evaluate(LOOP, budget)
        finally:
            ended.append(budget.operations_used)

    task = asyncio.create_task(Cooperation().run(call))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended
    assert ended[0] <= 2 * SLICE
    assert RUNNING.budget is None
    assert evaluate(LOOP, Budget()) == ""  # outside of a call nothing is put aside


async def test_calls_take_turns_and_keep_their_context() -> None:
    cooperation, order = Cooperation(), []

    def call(name: str) -> str:
        for _ in range(4):
            evaluate(LOOP, Budget())
            order.append(CALLER.get())
        return name

    async def one(name: str) -> str:
        CALLER.set(name)
        return await cooperation.run(call, name)

    assert list(await asyncio.gather(one("a"), one("b"), one("c"))) == ["a", "b", "c"]
    assert order == ["a", "b", "c"] * 4


async def test_a_cancellation_ends_the_evaluation_of_an_input() -> None:
    inputs = ", ".join(f'v{number}: "{LOOP}"' for number in range(300))  # seconds, on a fast machine too
    async with system() as run:
        execution = await run.start(f"- step: one\n  tool: {{kind: noop, input: {{{inputs}}}}}\n")
        async with asyncio.timeout(20):
            while not await run.events(execution, "step.started"):
                await asyncio.sleep(0)
        await run.tell(execution, Cancel("cancel-1", "enough"))
        assert (await run.ended(execution))["status"] == "cancelled"
