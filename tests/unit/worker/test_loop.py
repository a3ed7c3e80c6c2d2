"""The worker's loop: capacity, hand-off, heartbeat, lost leases, drain, resends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from noetl.model.errors import StoreUnavailable
from noetl.model.messages import Cancel, Report
from noetl.model.work import Lease
from noetl.ports.work import Answer, Deliver, Reply, Stop, Subscription
from noetl.server.control_plane import LocalControlPlane
from noetl.worker.loop import Worker
from tests.unit.worker.system import System, system

pytestmark = pytest.mark.asyncio

LONG = """
    - step: one
      tool: {kind: shell, command: "echo $$ > pid.tmp; mv pid.tmp pid; sleep 300", cwd: "{{ workload.folder }}"}
    """


async def pid_in(folder: Path) -> int:
    async with asyncio.timeout(20):
        while not (folder / "pid").exists():
            await asyncio.sleep(0.01)
    return int((folder / "pid").read_text())


async def gone(pid: int) -> None:
    async with asyncio.timeout(20):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.01)


async def test_a_cancellation_reaches_the_work_without_a_heartbeat(tmp_path: Path) -> None:
    async with system(workers=0) as run:
        run.worker(heartbeat_s=600.0)
        execution = await run.start(LONG, folder=str(tmp_path))
        pid = await pid_in(tmp_path)
        await run.tell(execution, Cancel("cancel-1", "enough"))
        await gone(pid)


async def test_a_cancelled_execution_ends_its_work(tmp_path: Path) -> None:
    async with system() as run:
        execution = await run.start(LONG, folder=str(tmp_path))
        pid = await pid_in(tmp_path)
        await run.tell(execution, Cancel("cancel-1", "enough"))
        assert (await run.ended(execution))["status"] == "cancelled"
        await gone(pid)


TIMEOUTS = ("", "spec: {timeout_s: 4}", "spec: {policy: {lifecycle: {timeout_s: 4}}}")


async def test_steps_that_take_too_long_are_ended(tmp_path: Path) -> None:
    """The limit of the playbook, of the step and of its policy, side by side."""
    async with system() as run:
        started: list[tuple[str, Path]] = []
        for number, spec in enumerate(TIMEOUTS):
            folder = tmp_path / str(number)
            folder.mkdir()
            root, more = ("", f"      {spec}\n") if spec else ("executor: {spec: {timeout_s: 4}}\n", "")
            workflow = LONG.rstrip(" ") + more
            started.append((await run.start(workflow, root, f"tests/long_{number}", folder=str(folder)), folder))
        for execution, folder in started:
            pid = await pid_in(folder)
            row = await run.ended(execution)
            assert row["status"] == "failed"
            assert row["error"]["kind"] == "timeout"
            await gone(pid)


async def test_a_drained_worker_finishes_and_takes_nothing_more(tmp_path: Path) -> None:
    async with system(workers=0) as run:
        worker = run.worker()
        execution = await run.start(
            """
            - step: one
              tool: {kind: shell, command: "touch begun; while [ ! -e go ]; do sleep 0.02; done", cwd: "{{ workload.folder }}"}
              next: two
            - step: two
              tool: {kind: noop}
            """,
            folder=str(tmp_path),
        )
        async with asyncio.timeout(20):
            while not (tmp_path / "begun").exists():
                await asyncio.sleep(0.01)
        worker.drain()
        (tmp_path / "go").touch()
        async with asyncio.timeout(20):
            await run.running[0]
        assert [event.entity_id for event in await run.events(execution, "step.done")] == ["one"]
        assert worker.busy == 0
        run.worker("w2")
        assert (await run.ended(execution))["status"] == "completed"


async def test_no_more_than_the_capacity_runs_at_once(tmp_path: Path) -> None:
    code = "import os, time; p = folder + str(n); open(p, 'w').close(); time.sleep(0.05); result = len(os.listdir(folder)); os.remove(p)"
    async with system(workers=0) as run:
        run.worker(capacity=2)
        row = await run.run(
            f"""
            - step: all
              loop: {{in: "{{{{ range(12) | list }}}}", iterator: n, spec: {{mode: parallel, max_in_flight: 8}}}}
              tool: {{kind: python, code: "{code}", input: {{folder: "{tmp_path}/"}}}}
            """
        )
        assert row["status"] == "completed"
        assert max(row["result"]["results"]) <= 2


async def test_the_report_of_a_step_brings_the_next(tmp_path: Path) -> None:
    async with system(workers=0) as run:
        counted = Counted(run)
        run.worker(capacity=1)
        steps = "".join(f"- step: s{n}\n  tool: {{kind: noop}}\n  next: s{n + 1}\n" for n in range(20))
        await run.run(steps + "- step: s20\n  tool: {kind: noop}\n")
        assert counted.reports == 21
        assert counted.handed == 20


class Counted:
    """Counts reports to the control plane, and work in the answers."""

    def __init__(self, run: System) -> None:
        self.reports = self.handed = 0
        self._control = run.control
        run.shared = replace(run.shared, control=Spy(run.control, self))


class Spy:
    """A control plane that looks on."""

    def __init__(self, control: LocalControlPlane, counted: Counted) -> None:
        self._control = control
        self._counted = counted
        self.subscribe = control.subscribe
        self.heartbeat = control.heartbeat
        self.playbook = control.playbook

    def report(self, execution_id: str, report: Report, want: int, reply: Reply) -> None:
        def replied(answer: Answer | Exception) -> bool:
            assert isinstance(answer, Answer)
            self._counted.handed += len(answer.leases)
            return reply(answer)

        self._counted.reports += 1
        self._control.report(execution_id, report, want, replied)


class Again:
    """Control plane that leases work again before its slot has seen the answer."""

    def __init__(self, control: LocalControlPlane) -> None:
        self._control = control
        self._leases: dict[str, Lease] = {}
        self._deliver: Deliver | None = None
        self.heartbeat = control.heartbeat
        self.playbook = control.playbook

    def subscribe(self, worker: str, pools: Sequence[str], capacity: int, deliver: Deliver, stop: Stop) -> Subscription:
        def delivered(leases: list[Lease]) -> None:
            self._leases |= {lease.work.work_id: lease for lease in leases}
            deliver(leases)

        self._deliver = deliver
        return self._control.subscribe(worker, pools, capacity, delivered, stop)

    def report(self, execution_id: str, report: Report, want: int, reply: Reply) -> None:
        def replied(answer: Answer | Exception) -> bool:
            assert isinstance(answer, Answer)
            assert self._deliver is not None
            is_taken = reply(answer)
            lease = self._leases.pop(report.message_id.partition("@")[0], None)
            self._leases |= {found.work.work_id: found for found in answer.leases}
            if lease is not None:
                self._deliver([structs.replace(lease, epoch=lease.epoch + 1_000)])
            return is_taken

        self._control.report(execution_id, report, want, replied)


async def test_work_that_comes_again_keeps_the_answer_to_its_last_report() -> None:
    async with system(workers=0) as run:
        run.shared = replace(run.shared, control=Again(run.control))
        run.worker()
        steps = "".join(f"- step: s{n}\n  tool: {{kind: noop}}\n  next: s{n + 1}\n" for n in range(3))
        execution = await run.start(steps + "- step: s3\n  tool: {kind: noop}\n")
        assert (await run.ended(execution))["status"] == "completed"


class Flaky:
    """Control plane that loses some calls, before or after they took effect."""

    def __init__(self, control: LocalControlPlane) -> None:
        self._control = control
        self._count = {"report": 0, "heartbeat": 0, "playbook": 0}
        self.subscribe = control.subscribe

    def fate(self, what: str) -> str:
        """Return what gets lost of a call: in turn nothing, the question, the answer."""
        self._count[what] += 1
        return ("kept", "question", "answer")[self._count[what] % 3]

    async def playbook(self, playbook: str) -> bytes:
        if self.fate("playbook") == "question":
            raise StoreUnavailable("not now")
        return await self._control.playbook(playbook)

    async def heartbeat(self, worker: str, held: Sequence[tuple[str, int]]) -> list[str]:
        if self.fate("heartbeat") != "kept":
            raise ConnectionError("heartbeat lost")
        return await self._control.heartbeat(worker, held)

    def report(self, execution_id: str, report: Report, want: int, reply: Reply) -> None:
        fate = self.fate("report")
        if fate == "question":
            reply(StoreUnavailable("not now"))
        elif fate == "answer":
            self._control.report(execution_id, report, want, lambda _: reply(ConnectionError("answer lost")))
        else:
            self._control.report(execution_id, report, want, reply)


async def test_reports_that_get_lost_are_sent_again_and_counted_once() -> None:
    async with system(workers=0) as run:
        run.shared = replace(run.shared, control=Flaky(run.control))
        run.worker()
        steps = "".join(f"- step: s{n}\n  tool: {{kind: noop}}\n  next: s{n + 1}\n" for n in range(10))
        execution = await run.start(
            steps
            + "- step: s10\n  loop: {in: [1, 2, 3, 4, 5], iterator: n, spec: {mode: parallel}}\n"
            + '  tool: {kind: noop, result: "{{ n }}"}\n'
        )
        row = await run.ended(execution)
        assert (row["status"], row["result"]["results"]) == ("completed", [1, 2, 3, 4, 5])
        done = [event.entity_id for event in await run.events(execution, "step.done")]
        assert done == [f"s{number}" for number in range(11)]


async def test_a_worker_that_is_gone_is_followed_by_another(tmp_path: Path) -> None:
    """The second continues after the last recorded task, with the same key."""
    async with system(workers=0, lease_s=2) as run:
        run.worker("first")
        execution = await run.start(
            """
            - step: one
              tool:
                - a: {kind: shell, command: "echo a >> done", cwd: "{{ workload.folder }}"}
                - b:
                    kind: shell
                    command: "echo b $KEY >> done; [ $(grep -c b done) = 2 ] || sleep 300"
                    env: {KEY: "{{ _idempotency_key }}"}
                    cwd: "{{ workload.folder }}"
            """,
            folder=str(tmp_path),
        )
        async with asyncio.timeout(20):
            while not await run.events(execution, "task.done") or "b" not in (tmp_path / "done").read_text():
                await asyncio.sleep(0.02)
        run.running[0].cancel()
        await asyncio.wait([run.running[0]])
        run.worker("second")
        assert (await run.ended(execution))["status"] == "completed"
        key = f"b {execution}:one:b"
        assert (tmp_path / "done").read_text().split("\n") == ["a", key, key, ""]


async def test_a_lost_lease_stops_the_work_without_a_word(tmp_path: Path) -> None:
    async with system(workers=0, lease_s=2) as run:
        deaf = Deaf(run.control)
        slow = replace(run.shared, control=deaf)
        first = Worker("first", slow, heartbeat_s=0.1)
        run.running.append(asyncio.create_task(first.run()))
        execution = await run.start(LONG, folder=str(tmp_path))
        pid = await pid_in(tmp_path)
        first.drain()
        deaf.silent = True
        async with asyncio.timeout(20):
            while not (leases := await run.control.claim("second", ("",), 1, 0)):
                await asyncio.sleep(0.05)
        deaf.silent = False
        await gone(pid)
        async with asyncio.timeout(20):
            while first.busy:
                await asyncio.sleep(0.01)
        assert leases[0].work.execution_id == execution
        assert await run.events(execution, "step.failed") == []
        assert await run.events(execution, "report.late") == []


class Deaf(Flaky):
    """A control plane that a heartbeat does not reach for a while."""

    silent = False

    def fate(self, what: str) -> str:
        return "kept"

    async def heartbeat(self, worker: str, held: Sequence[tuple[str, int]]) -> list[str]:
        if self.silent:
            raise ConnectionError("nobody there")
        return await super().heartbeat(worker, held)


async def test_a_failure_of_the_worker_itself_reaches_the_execution(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def runner(self, kind: str) -> Any:
            raise ZeroDivisionError("a bug")

    async with system(workers=0) as run:
        run.shared = replace(run.shared, tools=Broken())
        run.worker()
        row = await run.run("- step: one\n  tool: {kind: noop}\n")
        assert row["status"] == "failed"
        assert row["error"]["code"] == "WORKER"
        assert "ZeroDivisionError: a bug" in row["error"]["message"]


async def test_a_tool_that_raises_is_an_outcome() -> None:
    class Broken:
        def runner(self, kind: str) -> Any:
            async def run(fields: Any, context: Any) -> Any:
                raise ZeroDivisionError("a bug")

            return run

    async with system(workers=0) as run:
        run.shared = replace(run.shared, tools=Broken())
        run.worker()
        row = await run.run("- step: one\n  tool: {kind: noop}\n")
        assert row["error"]["code"] == "TOOL_RAISED"


async def test_a_cancelled_worker_leaves_no_process(tmp_path: Path) -> None:
    async with system() as run:
        await run.start(LONG, folder=str(tmp_path))
        pid = await pid_in(tmp_path)
        assert os.getpgid(pid) == pid
    assert not Path(f"/proc/{pid}").exists()
