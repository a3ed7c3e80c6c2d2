"""Decisions with heavy templates: the event loop serves others meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic

import pytest

from noetl.server.sequencer import apart
from tests.server.serving import in_process, playbook

pytestmark = pytest.mark.asyncio
HEAVY = "{% for a in range(150) %}{% for b in range(150) %}{% set c = a * b %}{% endfor %}{% endfor %}"
STEPS = """  - step: a
    tool: {kind: noop}
    set: {ctx.text: "%s", ctx.id: "{{ gen_uuid() }}"}
    next:
      arcs:
        - {step: b, when: "%s"}
        - {step: b, args: {id: "{{ ctx.id }}", at: "{{ now() }}"}}
  - step: b
    loop: {in: "%s{{ [1, 2, 3] }}", iterator: n}
    tool: {kind: python, code: "result = {'n': n}", args: {n: "{{ iter.n }}"}}
"""


def heavy(more: str = "") -> str:
    return playbook(STEPS % (f"{HEAVY}x{more}", f"{HEAVY}{{{{ ctx.text == 'y' }}}}", ""), "heavy")


async def test_a_heavy_decision_is_made_as_every_other(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(heavy())
        found = await served.until(started, "completed")
        assert found["warnings"] == []
        events = await served.services.store.read(started)
        assert (await served.json("GET", f"/api/vars/{started}/text"))["value"] == "x"
        assert sum(event.event_type == "step.done" for event in events) == 2


async def test_many_heavy_executions_at_once_all_end(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = [await served.start(heavy(str(number))) for number in range(6)]
        for one in started:
            await served.until(one, "completed")


async def test_messages_of_one_execution_wait_for_each_other(tmp_path: Path) -> None:
    """A gate that is heavy is evaluated for every message of its execution."""
    condition = f"{HEAVY}{{{{ ctx.n | default(0) >= 30 }}}}"
    gate = f'{{policy: {{admit: {{rules: [{{when: "{condition}", then: {{allow: true}}}}]}}}}}}'
    gated = playbook(
        "  - step: wait\n    tool: {kind: wait, signal: go}\n    next: end\n"
        f"  - step: end\n    spec: {gate}\n    tool: {{kind: noop}}\n",
        "gated",
    )
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(gated)
        await served.until(started, "waiting")
        await served.json("POST", f"/api/executions/{started}/signal", {"name": "go"})
        bodies = [{"writes": {"n": number}} for number in range(1, 31)]
        patches = (served.json("PATCH", f"/api/executions/{started}/ctx", body) for body in bodies)
        await asyncio.gather(*patches)
        await served.until(started, "completed")
        events = await served.services.store.read(started)
        assert sum(event.event_type == "ctx.patched" for event in events) == 30


async def test_a_start_with_a_heavy_workload_is_checked_before_it_is_written(tmp_path: Path) -> None:
    schema = {"properties": {"n": {"type": "integer"}}}
    text = playbook(
        "  - step: a\n    tool: {kind: noop}\n",
        "costly",
        workload={"text": f"{HEAVY}x", "n": 1},
        executor={"spec": {"workload_schema": schema}},
    )
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        path = await served.register(text)
        told = await served.json("POST", "/api/execute", {"path": path, "payload": {"n": "many"}}, 422)
        assert "workload.n" in told["detail"]
        many = {"path": path, "payloads": [{"n": 1}, {"n": 2}, {"n": "many"}]}
        assert "workload.n" in (await served.json("POST", "/api/execute/many", many, 422))["detail"]
        assert (await served.json("GET", "/api/executions"))["executions"] == []
        started = await served.json("POST", "/api/execute", {"path": path, "payload": {"n": 5}})
        found = await served.until(started["execution_id"], "completed")
        assert found["workload"] == {"text": "x", "n": 5}


async def test_a_start_that_cannot_be_evaluated_in_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_DEADLINE_S", 0.001)
    text = playbook("  - step: a\n    tool: {kind: noop}\n", "costly", workload={"text": f"{HEAVY}x"})
    async with in_process(tmp_path) as served:
        told = await served.json("POST", "/api/execute", {"path": await served.register(text)}, 400)
        assert "takes more than 0.001 s of processor time" in told["detail"]


async def test_the_event_loop_runs_while_a_decision_is_heavy(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        await served.until(await served.start(heavy()), "completed")  # a child is there now
        longest, begun = 0.0, monotonic()
        ending = asyncio.create_task(served.until(await served.start(heavy("y")), "completed"))
        while not ending.done():
            before = monotonic()
            await asyncio.sleep(0)
            longest = max(longest, monotonic() - before)
        assert longest < (monotonic() - begun) / 2, "one decision kept the event loop"


async def test_a_decision_that_never_ends_is_a_dead_letter_that_names_the_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_DEADLINE_S", 0.01)
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(heavy())
        async with asyncio.timeout(60):
            while not (letters := (await served.json("GET", "/api/dlq"))["letters"]):
                await asyncio.sleep(0.05)
        assert "takes more than 0.01 s of processor time" in str(letters[0])
        assert "range(150)" in str(letters[0])
        assert (await served.json("GET", f"/api/executions/{started}"))["status"] == "running"
