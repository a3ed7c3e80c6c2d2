"""Side processes: warm, with a deadline and a memory limit, gone with the server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent

import pytest
import pytest_asyncio

from noetl.model.errors import Overloaded
from noetl.server.processes.side import Crashed, OutOfMemory, SideProcesses, TimedOut
from tests.server.cancelling import is_alive

pytestmark = pytest.mark.asyncio
LONG_S = 600.0  # no call of these tests comes near it
FUNCTIONS = dedent(
    """
    import os, socket, sys, time

    def me(): return os.getpid()
    def niceness(): return os.nice(0)
    def environment(): return dict(os.environ)
    def pipes():
        found = [os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd")]
        return [one for one in map(os.readlink, filter(os.path.lexists, found)) if one[:5] in ("pipe:", "socke")]
    def double(data): return data * 2
    def prints(): print("noise"); os.write(1, b"more"); sys.stdout.flush(); return "said"
    def forever():
        while True: pass
    def in_c(): return 9 ** 9 ** 9
    def large(): return bytearray(8 << 30)
    def wrong(): raise ValueError("on purpose")
    def leaves(): os._exit(3)
    def marked(path, text):
        with open(path, "a") as file: file.write(text)
    def sleeps(seconds): time.sleep(seconds); return "rested"
    def waits(path):
        while not os.path.exists(path): time.sleep(0.01)
    def marks_and_hangs(path):
        marked(path, str(os.getpid()))
        time.sleep(600)
    """
)


@pytest_asyncio.fixture
async def side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SideProcesses]:
    (tmp_path / "tried.py").write_text(FUNCTIONS)
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    made = SideProcesses(most=1)
    yield made
    await made.close()


async def test_the_event_loop_goes_first_on_a_busy_processor(side: SideProcesses) -> None:
    assert await side.run("tried:niceness", deadline_s=LONG_S) == min(os.nice(0) + 5, 19)


async def test_one_warm_child_serves_many_calls(side: SideProcesses) -> None:
    pids = {await side.run("tried:me", deadline_s=LONG_S) for _ in range(5)}
    assert len(pids) == 1
    assert os.getpid() not in pids


async def test_arguments_and_results_are_any_data(side: SideProcesses) -> None:
    for data in ([None, 1.5, "\ud800", 2**200, {"a": (1,)}], b"\0" * 3_000_000):
        assert await side.run("tried:double", data, deadline_s=LONG_S) == data * 2
    assert await side.run("tried:prints", deadline_s=LONG_S) == "said"


@pytest.mark.parametrize("function", ["forever", "in_c"])
async def test_a_late_call_is_killed_and_the_next_one_served(side: SideProcesses, function: str) -> None:
    pid = await side.run("tried:me", deadline_s=LONG_S)
    with pytest.raises(TimedOut):
        await side.run(f"tried:{function}", deadline_s=0.05)
    assert not is_alive(pid)
    assert await side.run("tried:me", deadline_s=LONG_S) != pid


async def test_waiting_for_the_processor_does_not_count(side: SideProcesses) -> None:
    assert await side.run("tried:sleeps", 1.0, deadline_s=0.5) == "rested"
    with pytest.raises(TimedOut, match="within 1 s"):
        await side.run("tried:sleeps", LONG_S, deadline_s=0.1)


async def test_a_killed_child_is_replaced_before_the_next_call(side: SideProcesses) -> None:
    with pytest.raises(TimedOut):
        await side.run("tried:forever", deadline_s=0.05)
    async with asyncio.timeout(30):
        while not side._idle:
            await asyncio.sleep(0.01)
    (ready,) = side._idle
    assert await side.run("tried:me", deadline_s=LONG_S) == ready._process.pid


async def test_memory_is_bounded(side: SideProcesses) -> None:
    with pytest.raises(OutOfMemory, match="1024 MiB"):
        await side.run("tried:large", deadline_s=LONG_S)
    assert await side.run("tried:double", 2, deadline_s=LONG_S) == 4


async def test_an_exception_and_a_crash_are_reported(side: SideProcesses) -> None:
    with pytest.raises(Crashed, match="on purpose"):
        await side.run("tried:wrong", deadline_s=LONG_S)
    with pytest.raises(Crashed, match="status 3"):
        await side.run("tried:leaves", deadline_s=LONG_S)
    with pytest.raises(Crashed, match="did not start"):
        await side.run("tried:nothing_of_that_name", deadline_s=LONG_S)
    assert await side.run("tried:double", 2, deadline_s=LONG_S) == 4


async def test_a_child_that_ended_while_idle_is_replaced(side: SideProcesses) -> None:
    pid = await side.run("tried:me", deadline_s=LONG_S)
    os.kill(pid, 9)
    assert await side.run("tried:me", deadline_s=LONG_S) != pid


async def test_a_child_that_the_server_knows_to_have_ended_is_replaced(tmp_path: Path) -> None:
    """The event loop of servers refuses to write to a pipe that it knows to be closed."""
    (tmp_path / "tried.py").write_text(FUNCTIONS)
    code = """
        import asyncio, os, uvloop
        from noetl.server.processes.side import SideProcesses

        async def main():
            side = SideProcesses(most=1)
            pid = await side.run("tried:me", deadline_s=600)
            os.kill(pid, 9)
            while os.path.exists(f"/proc/{pid}"):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            assert await side.run("tried:me", deadline_s=600) != pid
            await side.close()

        uvloop.run(main())
    """
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    ran = await asyncio.create_subprocess_exec(
        sys.executable, "-c", dedent(code), env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE
    )
    assert (await ran.communicate())[1] == b""


async def test_a_child_sees_no_secret_and_no_file_of_the_server(
    side: SideProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_DATABASE", "postgresql://me:hush-hush@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        assert "hush-hush" not in str(await side.run("tried:environment", deadline_s=LONG_S))
        pipes = await side.run("tried:pipes", deadline_s=LONG_S)
    finally:
        os.close(reading)
        os.close(writing)
    assert len(pipes) == 2, pipes  # its orders and its answers


async def test_small_orders_go_before_large_ones(side: SideProcesses, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", str(tmp_path / "log")
    first = asyncio.create_task(side.run("tried:waits", str(gate), deadline_s=LONG_S))
    await asyncio.sleep(0)
    texts = ["L" * 200_000, "s", "t"]
    rest = [asyncio.create_task(side.run("tried:marked", log, text, deadline_s=LONG_S)) for text in texts]
    await asyncio.sleep(0)
    gate.touch()
    await asyncio.gather(first, *rest)
    assert Path(log).read_text() == "st" + "L" * 200_000


async def test_a_cancelled_caller_ends_its_child_and_frees_its_place(side: SideProcesses, tmp_path: Path) -> None:
    pid = await side.run("tried:me", deadline_s=LONG_S)
    running = asyncio.create_task(side.run("tried:waits", str(tmp_path / "never"), deadline_s=LONG_S))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(side.run("tried:double", 1, deadline_s=LONG_S))
    await asyncio.sleep(0)
    waiting.cancel()
    running.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    assert not is_alive(pid)
    assert await side.run("tried:double", 2, deadline_s=LONG_S) == 4


async def test_a_child_ends_with_its_server(tmp_path: Path) -> None:
    (tmp_path / "tried.py").write_text(FUNCTIONS)
    code = """
        import asyncio, sys
        from noetl.server.processes.side import SideProcesses

        asyncio.run(SideProcesses().run("tried:marks_and_hangs", sys.argv[1], deadline_s=600))
    """
    log = tmp_path / "pid"
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    server = subprocess.Popen([sys.executable, "-c", dedent(code), str(log)], env={**os.environ, "PYTHONPATH": paths})
    try:
        while not log.exists() or not log.read_text():
            assert server.poll() is None
            await asyncio.sleep(0.02)
    finally:
        server.kill()
        server.wait()
    async with asyncio.timeout(30):
        while is_alive(int(log.read_text())):
            await asyncio.sleep(0.02)


async def test_a_large_call_is_overtaken_by_some_and_not_for_ever(side: SideProcesses, tmp_path: Path) -> None:
    gates = [tmp_path / "gate1", tmp_path / "gate2"]
    busy = [asyncio.create_task(side.run("tried:waits", str(gate), deadline_s=LONG_S)) for gate in gates]
    ended: list[str] = []

    async def call(name: str, size: int) -> None:
        await side.run("tried:double", b"x" * size, deadline_s=LONG_S)
        ended.append(name)

    await asyncio.sleep(0)
    calls = [asyncio.create_task(call("large", 300_000))]
    await asyncio.sleep(0)
    calls += [asyncio.create_task(call(str(number), 10)) for number in range(40)]
    while len(side._waiting) < 41:
        await asyncio.sleep(0.01)
    for gate in gates:
        gate.touch()
    await asyncio.gather(*busy, *calls)
    assert 5 < ended.index("large") < 30


async def test_calls_are_refused_when_many_wait(
    side: SideProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.server.processes.side._MOST_WAITING", 1)
    gates = [tmp_path / name for name in ("gate1", "gate2")]
    calls = [asyncio.create_task(side.run("tried:waits", str(gate), deadline_s=LONG_S)) for gate in gates]
    while not side._waiting:
        await asyncio.sleep(0.01)
    with pytest.raises(Overloaded):
        await side.run("tried:me", deadline_s=LONG_S)
    for gate in gates:
        gate.touch()
    await asyncio.gather(*calls)
