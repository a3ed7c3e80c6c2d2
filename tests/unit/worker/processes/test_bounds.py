"""Bounds of tasks: processes, files, disk, processor time; what tasks leave."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from noetl.model.outcome import Outcome
from noetl.ports import Job
from noetl.worker.processes import bounds as processes
from noetl.worker.processes import sandbox
from noetl.worker.processes.bounds import Bounds, PidGroups, ProcessFiles
from noetl.worker.processes.children import ChildPool

pytestmark = pytest.mark.asyncio
needs_landlock = pytest.mark.skipif(sandbox.problem("landlock") is not None, reason=str(sandbox.problem("landlock")))


@asynccontextmanager
async def pool(mode: str = "none", **limits: int) -> AsyncIterator[ChildPool]:
    made = ChildPool(bounds=Bounds(memory=600 << 20, **limits), sandbox=mode)
    try:
        yield made
    finally:
        await made.close()


async def run(children: ChildPool, code: str, execution: str = "1", log: Callable[[str], None] = print) -> Outcome:
    return await children.python(execution, Job(code), log)


def said(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    return outcome.error.message


async def test_code_opens_only_so_many_files() -> None:
    async with pool(files=40) as children:
        message = said(await run(children, "import os\nkept = [os.open('/dev/null', 0) for _ in range(100)]"))
        assert "its limit is 40 (NOETL_TASK_OPEN_FILES changes it)" in message


async def test_a_file_has_a_largest_size(tmp_path: Path) -> None:
    async with pool(disk=1 << 20) as children:
        message = said(await run(children, f"open('{tmp_path}/big', 'wb').write(bytes(3 << 20))"))
        assert "its limit is 1 MiB (NOETL_TASK_DISK_MB changes it)" in message
        ended = await children.command(["dd", "if=/dev/zero", f"of={tmp_path}/dd", "bs=1M", "count=3"], env={})
        assert ended.returncode != 0
    assert all(path.stat().st_size <= 1 << 20 for path in tmp_path.iterdir())


async def test_code_has_only_so_much_processor_time() -> None:
    async with pool(cpu_s=1) as children:
        message = said(await run(children, "while True: pass"))
        assert "was killed by SIGXCPU" in message
        assert "NOETL_TASK_CPU_SECONDS" in message
        assert (await run(children, "result = 1")).result == 1


async def test_a_task_is_not_charged_for_those_before_it() -> None:
    burn = "import time, os\nwhile time.process_time() < 0.6: pass\nresult = os.getpid()"
    async with pool(cpu_s=1) as children:
        first, second = [(await run(children, burn)).result for _ in range(2)]
        assert first != second


@needs_landlock
async def test_many_small_files_are_too_much_as_well() -> None:
    code = """
import os, time
for n in range(16):
    open(f"{os.environ['TMPDIR']}/{n}", "wb").write(bytes(1 << 18))
print("written")
time.sleep(600)
"""
    async with pool("landlock", disk=1 << 20) as children:
        assert "for too much data in its folder (NOETL_TASK_DISK_MB" in said(await run(children, code))
        shell = "for n in $(seq 16); do head -c 262144 /dev/zero > $TMPDIR/$n; done; sleep 600"
        ended = await children.command(["sh", "-c", shell], env={})
        assert ended.exceeded.startswith("too much data in its folder (NOETL_TASK_DISK_MB")


FORK = """
import os, time
count = 0
try:
    while count < 300:
        if os.fork() == 0:
            time.sleep(600)
        count += 1
except OSError as error:
    result = [count, str(error)]
"""


async def test_a_task_starts_only_so_many_processes() -> None:
    """The kernel refuses more in a control group; else the nursery ends the task."""
    async with pool(processes=30) as children:
        outcome = await run(children, FORK + "time.sleep(600) if count == 300 else None")
        if outcome.error is None:
            assert outcome.result[0] < 30
        else:
            assert "NOETL_TASK_PROCESSES" in said(outcome)
        assert (await run(children, "result = 1", "2")).result == 1


async def test_without_control_groups_the_nursery_ends_a_task_with_too_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from noetl.worker.processes import bounds\nbounds._places = lambda: iter(())\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    async with pool(processes=30) as children:
        if os.getuid() == 0:  # the kernel's limit per user does not hold for root
            assert "for too many processes and threads (NOETL_TASK_PROCESSES" in said(
                await run(children, FORK + "time.sleep(600)")
            )
        else:
            assert (await run(children, FORK)).result[0] <= 30
        assert (await run(children, "result = 1", "2")).result == 1


async def test_no_group_is_left() -> None:
    groups = PidGroups()
    if not groups.are_here:
        pytest.skip("this user may create no control groups")
    async with pool(processes=30) as children:
        assert (await run(children, "result = 1")).result == 1
    place = next(place for place in processes._places() if place.is_dir())
    assert [path.name for path in place.glob("noetl-*") if not Path("/proc", path.name.split("-")[1]).exists()] == []


DAEMON = """
import os, subprocess, sys
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.close(read)
        os.write(write, str(os.getpid()).encode())
        os.close(write)
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
os.close(write)
result = int(os.read(read, 100))
"""
LETS_GO = "import ctypes; ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)"  # no longer adopts what its children leave


@pytest.mark.parametrize("mode", ["none", pytest.param("landlock", marks=needs_landlock)])
async def test_a_detached_process_ends_with_its_task_not_with_its_execution(mode: str) -> None:
    async with pool(mode) as children:
        outcome = await run(children, DAEMON)
        assert outcome.error is None, outcome.error
        assert not Path("/proc", str(outcome.result)).exists()
        assert (await run(children, "result = 1")).result == 1


async def test_a_process_that_leaves_its_task_is_found() -> None:
    async with pool() as children:
        outcome = await run(children, LETS_GO + DAEMON)
        assert outcome.error is None, outcome.error
        async with asyncio.timeout(60):
            while Path("/proc", str(outcome.result)).exists():
                await asyncio.sleep(0.05)


async def test_a_command_leaves_nothing(tmp_path: Path) -> None:
    shell = f"setsid sh -c 'setsid env -i sleep 600 & echo $! > {tmp_path}/pid; sync' < /dev/null > /dev/null 2>&1"
    async with pool() as children:
        assert (await children.command(["sh", "-c", shell], env={})).returncode == 0
        assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


@needs_landlock
async def test_a_thread_that_python_does_not_know_ends_with_its_task() -> None:
    code = """
import ctypes, os
C = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
thread = ctypes.c_ulong()
library = ctypes.CDLL(None)
library.pthread_create(ctypes.byref(thread), None, ctypes.cast(library.pause, ctypes.c_void_p), None)
result = os.getpid()
"""
    async with pool("landlock") as children:
        first = (await run(children, code)).result
        assert not Path("/proc", str(first)).exists()


async def test_tasks_at_work_are_no_orphans(tmp_path: Path) -> None:
    """A task that ends takes nothing of the others with it."""
    os.mkfifo(tmp_path / "gate")
    waits = f"print('ready')\nopen('{tmp_path}/gate').read()\nresult = os.path.exists(f'/proc/{{result}}')"
    async with pool() as children:
        printed: asyncio.Queue[str] = asyncio.Queue()
        staying = asyncio.create_task(run(children, DAEMON + waits, "1", printed.put_nowait))
        await printed.get()
        assert (await run(children, DAEMON, "2")).error is None
        await asyncio.to_thread((tmp_path / "gate").write_text, "go")
        assert (await staying).result is True


async def test_a_process_is_alone_until_it_has_a_child_or_a_thread() -> None:
    code = """
        import subprocess, sys, threading
        for line in sys.stdin:
            if line == "child\\n":
                child = subprocess.Popen(["sleep", "600"])
            elif line == "no child\\n":
                child.kill(), child.wait()
            else:
                threading.Thread(target=threading.Event().wait, daemon=True).start()
            print("done", flush=True)
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", dedent(code), stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    files, found = ProcessFiles(process.pid), []
    for line in ("child", "no child", "thread", "child"):
        process.stdin.write(f"{line}\n".encode())
        assert await process.stdout.readline() == b"done\n"
        found.append((files.is_alone(one_thread=True), files.is_alone(one_thread=False)))
    assert found == [(False, False), (True, True), (False, True), (False, False)]
    for pid in (*processes.children_of(process.pid), process.pid):
        os.kill(pid, 9)
    await process.wait()
    assert not files.is_alone(one_thread=True)
    files.close()
