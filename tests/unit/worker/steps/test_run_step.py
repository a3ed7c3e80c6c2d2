"""A worker drives pipelines and items with real parts on a store in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from noetl.model.messages import Signal
from noetl.worker.steps import run_step
from noetl.worker.tool_context import TaskContext
from tests.unit.worker.system import system

pytestmark = pytest.mark.asyncio


async def test_a_pipeline_of_tools() -> None:
    async with system() as run:
        row = await run.run(
            """
            - step: one
              tool:
                - add: {kind: python, input: {x: "{{ workload.n }}"}, code: "result = {'y': x + 1}"}
                - say: {kind: shell, command: "echo $Y", env: {Y: "{{ _prev.y }}"}}
              set: {ctx.said: "{{ output.data.stdout | trim }}"}
              next: two
            - step: two
              tool: {kind: noop, result: "{{ ctx.said }} {{ one.add.y }}"}
            """,
            n=4,
        )
        assert (row["status"], row["result"]) == ("completed", "5 5")


async def test_tasks_that_never_wait_let_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, seen = 0, []

    class Seeing(TaskContext):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            seen.append(turns)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(run_step, "TaskContext", Seeing)
    monkeypatch.setattr(run_step, "BREATH_MS", -1)
    tasks = "".join(f"\n    - t{number}: {{kind: noop}}" for number in range(20))
    async with system() as run, asyncio.TaskGroup() as group:
        other = group.create_task(others())
        row = await run.run(f"- step: one\n  tool:{tasks}\n")
        other.cancel()
    assert row["status"] == "completed"
    assert len(set(seen)) == 20


async def test_what_a_task_logs_is_recorded() -> None:
    async with system() as run:
        execution = await run.start(
            """
            - step: one
              tool: {kind: python, code: "for n in range(1200): print(n)"}
            """
        )
        await run.ended(execution)
        records = await run.events(execution, "task.logged")
        lines = [line for record in records for line in record.payload["lines"]]
        assert [text for _, _, text in lines] == [str(number) for number in range(1000)]
        assert sum(record.payload.get("dropped", 0) for record in records) == 200
        assert {record.entity_id for record in records} == {"one_task"}


async def test_a_task_that_is_retried_and_then_succeeds(tmp_path: Path) -> None:
    code = """
        import os
        count = len(os.listdir(folder))
        open(folder + "/" + str(count), "w").close()
        if count < 2: raise RetryableError("not yet")
        result = count
    """
    async with system() as run:
        execution = await run.start(
            f"""
            - step: one
              tool:
                kind: python
                input: {{folder: "{{{{ workload.folder }}}}"}}
                code: |
                  {"                  ".join(line.strip() + chr(10) for line in code.strip().splitlines())}
                spec:
                  policy:
                    rules:
                      - when: "{{{{ outcome.status == 'error' and outcome.error.retryable }}}}"
                        then: {{do: retry, attempts: 5, delay: 0.01}}
            """,
            folder=str(tmp_path),
        )
        row = await run.ended(execution)
        assert (row["status"], row["result"]) == ("completed", 2)
        assert [event.attempt for event in await run.events(execution, "task.attempt.failed")] == [1, 2]


async def test_a_time_out_ends_the_attempt() -> None:
    async with system() as run:
        row = await run.run(
            """
            - step: one
              tool:
                kind: python
                code: "import time; time.sleep(300)"
                timeout_ms: 300
                spec: {policy: {rules: [{else: {then: {do: fail}}}]}}
            """
        )
        assert row["status"] == "failed"
        assert row["error"]["kind"] == "timeout"
        assert "`one_task` took longer than its time-out of 0.3 s" in row["error"]["message"]


async def test_a_kind_that_workers_do_not_run() -> None:
    async with system() as run:
        row = await run.run("- step: one\n  tool: {kind: container, image: busybox}\n")
        assert row["status"] == "failed"
        assert row["error"]["code"] == "NO_TOOL"


async def test_an_undefined_name_in_an_input() -> None:
    async with system() as run:
        row = await run.run('- step: one\n  tool: {kind: noop, result: "{{ workload.orderz }}"}\n', orders=1)
        assert row["error"]["kind"] == "template"
        assert "orders" in row["error"]["message"]


async def test_a_sleep_and_a_signal_hold_no_worker() -> None:
    async with system() as run:
        execution = await run.start(
            """
            - step: one
              tool:
                - first: {kind: noop, result: 1}
                - pause: {kind: sleep, seconds: 0.05}
                - asked: {kind: wait, signal: go}
                - last: {kind: noop, result: "{{ first + asked.n }}"}
            """
        )
        await run.until(execution, "timer.fired")
        await run.tell(execution, Signal("signal-1", "go", {"n": 5}))
        row = await run.ended(execution)
        assert (row["status"], row["result"]["results"]["last"]) == ("completed", 6)
        assert len(await run.events(execution, "step.suspended")) == 2
        started = [event.entity_id for event in await run.events(execution, "task.started")]
        assert started == ["first", "pause", "asked", "last"]


@pytest.mark.parametrize("where", ["local", "distributed"])
async def test_a_parallel_loop_keeps_the_order_of_results(where: str) -> None:
    async with system(workers=2) as run:
        row = await run.run(
            """
            - step: all
              loop:
                in: "{{ range(40) | list }}"
                iterator: n
                spec: {mode: parallel, max_in_flight: 7, policy: {exec: WHERE}}
              tool: {kind: python, code: "result = [n, index]", input: {index: "{{ iter.index }}"}}
            """.replace("WHERE", where)
        )
        assert row["result"]["results"] == [[number, number] for number in range(40)]


async def test_up_to_the_width_run_at_once_and_no_more(tmp_path: Path) -> None:
    code = "import os, time; open(folder + str(n), 'w').close(); time.sleep(0.1); result = len(os.listdir(folder)); os.remove(folder + str(n))"
    async with system() as run:
        row = await run.run(
            f"""
            - step: all
              loop: {{in: "{{{{ range(9) | list }}}}", iterator: n, spec: {{mode: parallel, max_in_flight: 3, policy: {{exec: local}}}}}}
              tool: {{kind: python, code: "{code}", input: {{folder: "{tmp_path}/"}}}}
            """
        )
        seen = row["result"]["results"]
        assert max(seen) <= 3
        assert max(seen) > 1


async def test_a_failed_item_ends_the_loop_and_the_items_under_way(tmp_path: Path) -> None:
    async with system() as run:
        row = await run.run(
            f"""
            - step: all
              loop: {{in: [0, 1, 2, 3, 4, 5], iterator: n, spec: {{mode: parallel, max_in_flight: 2, policy: {{exec: local}}}}}}
              tool:
                kind: shell
                command: 'touch {tmp_path}/"$N"; test "$N" != 1 || exit 1; test "$N" != 0 || sleep 300'
                env: {{N: "{{{{ n }}}}"}}
            """
        )
        assert row["status"] == "failed"
        assert "item 1 of the loop failed" in row["error"]["message"]
        assert {path.name for path in tmp_path.iterdir()} <= {"0", "1"}


async def test_an_item_that_takes_too_long() -> None:
    async with system() as run:
        row = await run.run(
            """
            - step: all
              loop:
                in: [0, 300]
                iterator: n
                item_timeout_ms: "{{ workload.most }}"
                spec: {policy: {failure: {mode: best_effort}}}
              tool: {kind: python, code: "import time; time.sleep(n); result = n"}
            """,
            most=1500,
        )
        assert row["result"]["stats"]["failed"] == 1
        assert row["result"]["results"] == [0, None]


async def test_items_of_a_sequential_loop_that_suspend_keep_their_order() -> None:
    async with system() as run:
        execution = await run.start(
            """
            - step: all
              loop: {in: [1, 2, 3], iterator: n}
              tool:
                - pause: {kind: sleep, seconds: 0.02}
                - done: {kind: noop, result: "{{ ctx.last | default(0) }}", set: {ctx.last: "{{ n }}"}}
            """
        )
        row = await run.ended(execution)
        assert [item["results"]["done"] for item in row["result"]["results"]] == [0, 1, 2]


async def test_durable_tasks_are_recorded_before_the_next_begins() -> None:
    async with system() as run:
        execution = await run.start(
            """
            - step: one
              tool:
                - a: {kind: noop}
                - b: {kind: noop}
            """,
            "executor: {spec: {durability: task}}\n",
        )
        await run.ended(execution)
        by_message = {event.entity_id: event for event in await run.events(execution, "task.started")}
        done = {event.entity_id: event for event in await run.events(execution, "task.done")}
        assert done["a"].seq < by_message["b"].seq
        assert "pipeline" in by_message["b"].payload


async def test_a_long_task_is_told_of_while_it_runs() -> None:
    async with system() as run:
        execution = await run.start(
            """
            - step: one
              tool: {kind: python, code: "import time; print('begun', flush=True); time.sleep(300)"}
            """
        )
        logged = await run.until(execution, "task.logged")
        assert [line[2] for line in logged.payload["lines"]] == ["begun"]
        assert [event.entity_id for event in await run.events(execution, "task.started")] == ["one_task"]
