"""Plain work: done in one go without a task of its own, and told of by a call, it comes to the same as any other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import to_builtins

from noetl.model.messages import Cancel, Report
from noetl.model.work import Lease
from noetl.server.control import LocalControl
from noetl.worker import loop
from noetl.worker.reporter import Reporter
from noetl.worker.run_step import StepWork
from tests.unit.worker.system import system

pytestmark = pytest.mark.asyncio

STEPS = {
    "a chain": """
        - step: one
          tool: {kind: noop}
          next: two
        - step: two
          tool: {kind: noop, message: "hello"}
        """,
    "tasks that read each other": """
        - step: one
          tool:
            - a: {kind: noop, result: 7}
            - b: {kind: noop, result: "{{ _prev + 1 }}"}
          set: {ctx.seen: "{{ one }}"}
          next: two
        - step: two
          tool: {kind: noop, result: "{{ one }} {{ ctx.seen }}"}
        """,
    "a result that is not small": """
        - step: one
          tool:
            - a: {kind: noop, result: {text: "{{ 'x' * 100000 }}"}}
            - b: {kind: noop, result: "{{ a.text | length }}"}
        """,
    "a template that fails": """
        - step: one
          tool: {kind: noop, result: "{{ nobody.knows }}"}
        """,
    "fields that do not fit": """
        - step: one
          tool: {kind: noop, message: "{{ [1] }}"}
        """,
    "a policy that tries again": """
        - step: one
          tool:
            kind: noop
            result: "{{ _attempt }}"
            spec: {policy: {rules: [{when: "{{ output.data < 3 }}", then: {do: retry, attempts: 5, delay: 0.01}}, {else: {then: {do: continue}}}]}}
        """,
    "a lone task that logs": """
        - step: one
          tool: {kind: noop, message: "hello", result: 7}
          next: two
        - step: two
          tool: {kind: noop, message: "bye", result: "a text"}
        """,
    "a lone task that fails": """
        - step: one
          tool: {kind: noop, message: [1]}
        """,
    "a wait between": """
        - step: one
          tool:
            - a: {kind: noop, result: 1}
            - b: {kind: sleep, seconds: 0}
            - c: {kind: noop, result: 2}
        """,
    "a time-out": """
        - step: one
          tool: {kind: noop, timeout_ms: 5000}
        """,
    "records that wait for the disk": """
        - step: one
          spec: {durability: task}
          tool:
            - a: {kind: noop}
            - b: {kind: noop}
        """,
}


THREE = "".join(f"- step: s{n}\n  tool: {{kind: noop}}\n" + (f"  next: s{n + 1}\n" if n < 3 else "") for n in (1, 2, 3))


class Far:
    """The same control plane, as one that cannot call back."""

    def __init__(self, control: LocalControl) -> None:
        self.claim, self.report = control.claim, control.report
        self.heartbeat, self.playbook = control.heartbeat, control.playbook


_TIMES = {"at", "timestamp", "started_at", "duration_ms", "expires_at", "until", "lines"} | {
    "first_seen",
    "began",
    "first_began",
    "woke_at",
}


def timeless(value: Any) -> Any:
    """Give what an event says, but for the times."""
    if isinstance(value, Mapping):
        return {name: timeless(item) for name, item in value.items() if name not in _TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


async def events_of(steps: str, *, near: bool) -> list[Any]:
    """Run steps twice, since at first their playbook has to be fetched; gives what the second time left."""
    async with system(workers=0) as run:
        if not near:
            run.shared = replace(run.shared, control=Far(run.control))
        run.worker()
        await run.run(steps)
        execution = await run.start(steps)
        await run.ended(execution)
        return [timeless(to_builtins(event)) for event in await run.store.read(execution)]


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
async def test_plain_work_leaves_the_same_events_as_any_other(steps: str) -> None:
    near = await events_of(steps, near=True)
    far = await events_of(steps, near=False)
    assert near == far
    assert len(near) > 10


async def test_plain_work_is_never_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    class Waiting(StepWork):
        def run(self) -> Any:
            waited.append(self.info.step)
            return super().run()

    monkeypatch.setattr(loop, "StepWork", Waiting)
    async with system() as run:
        await run.run(THREE)
        assert waited == ["s1"]  # its playbook had to be fetched
        assert (await run.run(THREE))["status"] == "completed"
        assert waited == ["s1"]
        await run.run(STEPS["records that wait for the disk"])
        assert waited == ["s1", "one"]


class Slow(Far):
    """A control plane that keeps what it would tell until it is let."""

    def __init__(self, control: LocalControl) -> None:
        super().__init__(control)
        self._control, self.attend = control, control.attend
        self._kept: list[tuple[str, Report, int, Any]] = []
        self.asked, self.returned = asyncio.Event(), asyncio.Event()

    def report_soon(self, execution_id: str, report: Report, want: int, told: Any) -> bool:
        self._kept.append((execution_id, report, want, told))
        self.asked.set()
        return True

    def give_back(self, leases: Sequence[Lease]) -> None:
        self._control.give_back(leases)
        self.returned.set()

    async def tell(self) -> None:
        self.asked.clear()
        execution_id, report, want, told = self._kept.pop()
        told(await self._control.report(execution_id, report, want))


async def test_work_that_comes_after_the_end_of_a_worker_goes_back() -> None:
    async with system(workers=0) as run:
        slow = Slow(run.control)
        run.shared = replace(run.shared, control=slow)
        run.worker("first")
        execution = await run.start(THREE)
        await slow.asked.wait()  # by the second step: the first had to fetch its playbook
        run.running[0].cancel()
        await asyncio.wait([run.running.pop(0)])
        await slow.tell()
        await slow.returned.wait()
        run.shared = replace(run.shared, control=run.control)
        run.worker("second")
        assert (await run.ended(execution))["status"] == "completed"
        assert await run.events(execution, "step.lease.expired") == []


async def test_a_drained_worker_waits_for_the_answer_to_its_last_report() -> None:
    async with system(workers=0) as run:
        slow = Slow(run.control)
        run.shared = replace(run.shared, control=slow)
        worker = run.worker("first")
        execution = await run.start(THREE)
        await slow.asked.wait()
        worker.drain()
        await asyncio.sleep(0)
        assert worker.busy == 1
        assert not run.running[0].done()
        await slow.tell()  # and the third step, whose lease was asked for before
        await slow.asked.wait()
        await slow.tell()
        await asyncio.wait([run.running.pop(0)])
        assert (await run.ended(execution))["status"] == "completed"


async def test_work_that_is_cancelled_before_it_begins_does_not_begin() -> None:
    async with system(workers=0) as run:
        worker = run.worker()
        await run.run(THREE)
        take = worker._take

        def stopped(lease: Lease) -> Reporter | None:
            held = take(lease)
            assert held is not None
            held.stop()
            return held

        worker._take = stopped  # type: ignore[method-assign]
        execution = await run.start(THREE)
        while worker.busy:
            await asyncio.sleep(0)
        assert await run.events(execution, "step.done") == []
        await run.tell(execution, Cancel("cancel-1", "enough"))
        assert (await run.ended(execution))["status"] == "cancelled"
        assert worker.busy == 0
