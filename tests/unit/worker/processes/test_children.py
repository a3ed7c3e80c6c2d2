"""Child processes: warm, one execution each, limited, gone with their worker."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import pytest_asyncio

from noetl.model.outcome import Outcome
from noetl.model.refs import MOST_BYTES
from noetl.ports import Job
from noetl.worker.processes.bounds import Bounds, children_of
from noetl.worker.processes.children import ChildPool
from noetl.worker.processes.outcomes import reason
from noetl.worker.processes.warm import Lines
from tests.server.cancelling import is_alive

pytestmark = pytest.mark.asyncio
WHO = "import os\nresult = os.getpid()"


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ChildPool]:
    made = ChildPool(bounds=Bounds(memory=600 << 20), kept=3, most_output=1000)
    yield made
    await made.close()


async def run(pool: ChildPool, code: str, execution: str = "1", **variables: Any) -> Outcome:
    return await pool.python(execution, Job(code, variables=variables), lambda _: None)


async def test_tasks_of_one_execution_share_a_child(pool: ChildPool) -> None:
    assert len({(await run(pool, WHO)).result for _ in range(5)}) == 1


async def test_a_child_never_serves_a_second_execution(pool: ChildPool) -> None:
    served: dict[int, str] = {}
    for execution in ("1", "2", "3", "1", "4", "5", "6", "1", "2"):
        pid = (await run(pool, WHO, execution)).result
        assert served.setdefault(pid, execution) == execution


async def test_tasks_at_the_same_time_have_a_child_each(pool: ChildPool) -> None:
    outcomes = await asyncio.gather(
        *(run(pool, "import time, os\ntime.sleep(0.1)\nresult = os.getpid()") for _ in range(6))
    )
    assert len({outcome.result for outcome in outcomes}) == 6


async def test_children_share_a_session_and_none_shares_a_group(pool: ChildPool) -> None:
    code = "import os, time\ntime.sleep(0.1)\nresult = [os.getpid(), os.getpgid(0), os.getsid(0)]"
    (pid, group, session), (other, other_group, other_session) = [
        done.result for done in await asyncio.gather(run(pool, code, "1"), run(pool, code, "2"))
    ]
    assert (pid, other) == (group, other_group)
    assert session == other_session
    assert session not in (pid, other, os.getsid(0))  # Linux shares the processors among sessions


async def test_unused_children_are_ended_beyond_a_number(pool: ChildPool) -> None:
    pids = [(await run(pool, WHO, str(execution))).result for execution in range(6)]
    while is_alive(pids[0]) or is_alive(pids[1]) or is_alive(pids[2]):
        await asyncio.sleep(0.01)
    assert all(is_alive(pid) for pid in pids[3:])


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        ("import os\nos._exit(3)", "PY_EXIT_3", "ended itself with exit code 3"),
        ("import os\nos._exit(0)", "PY_EXIT_0", "ended itself with exit code 0"),
        ("import os\nos.kill(os.getpid(), 11)", "PY_SIGSEGV", "was killed by SIGSEGV"),
        ("import os\nos.kill(os.getpid(), 9)", "PY_SIGKILL", "was killed by SIGKILL"),
        ("import ctypes\nctypes.string_at(0)", "PY_SIGSEGV", "was killed by SIGSEGV"),
    ],
)
async def test_a_crash_is_an_error_outcome_and_the_next_task_runs(
    pool: ChildPool, code: str, expected: str, words: str
) -> None:
    outcome = await run(pool, code)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.code, outcome.error.retryable) == ("python", expected, False)
    assert words in outcome.error.message
    assert (await run(pool, "result = 1")).result == 1


async def test_commands_have_the_limit_of_memory_too() -> None:
    pool = ChildPool(bounds=Bounds(memory=256 << 20))
    ended = await pool.command([sys.executable, "-c", "b'x' * (1 << 30)"], env={})
    await pool.close()
    assert ended.returncode == 1
    assert b"MemoryError" in ended.stderr


async def test_children_do_not_inherit_secrets_of_the_worker(pool: ChildPool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREDENTIAL_API", "API_TOKEN", "ENCRYPTION_KEY", "DATABASE_URL", "STORE"):
        monkeypatch.setenv(f"NOETL_{name}", "hidden")
    monkeypatch.setenv("NOETL_SERVER", "http://user:hidden@host/")
    monkeypatch.setenv("NOETL_CAPACITY", "3")
    monkeypatch.setenv("OTHER", "kept")
    code = "import os\nresult = {k: v for k, v in os.environ.items() if k.startswith(('NOETL_', 'OTHER'))}"
    seen = (await pool.python("1", Job(code), print)).result
    assert seen == {"NOETL_CAPACITY": "3", "OTHER": "kept"}
    ended = await pool.command(["sh", "-c", "echo $OTHER; env | grep -c hidden"], env={})
    assert ended.stdout == b"kept\n0\n"


async def test_what_was_printed_before_a_crash_is_kept(pool: ChildPool) -> None:
    lines: list[str] = []
    await pool.python("1", Job("import os\nprint('almost')\nos.write(1, b'there')\nos._exit(1)"), lines.append)
    assert lines == ["almost", "there"]


async def test_too_much_memory_is_an_error_outcome(pool: ChildPool) -> None:
    outcome = await run(pool, "x = bytearray(2 << 30)")
    assert outcome.error is not None
    assert outcome.error.code == "PY_MemoryError"
    assert "needs more memory than its limit of 600 MiB (NOETL_TASK_MEMORY_MB changes it)" in outcome.error.message
    assert outcome.error.details == {"limit_mb": 600, "setting": "NOETL_TASK_MEMORY_MB"}
    own = await run(pool, "raise MemoryError('too big')")
    assert own.error is not None
    assert own.error.message.startswith("MemoryError: too big")
    assert "NOETL_TASK_MEMORY_MB" in own.error.message
    assert (await run(pool, "result = 1")).result == 1


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(300)",
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(300)",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "sum(range(10 ** 12))",
    ],
)
async def test_runaway_code_is_ended(pool: ChildPool, code: str) -> None:
    (pid,) = await cancelled_after(pool, 1, "import os\nprint(os.getpid(), flush=True)\n" + code)
    assert not is_alive(pid)


async def cancelled_after(pool: ChildPool, count: int, code: str) -> list[int]:
    """Run code, cancel it after it printed `count` process ids, and return them."""
    lines: list[str] = []
    running = asyncio.create_task(pool.python("1", Job(code), lines.append))
    async with asyncio.timeout(20):
        while len(lines) < count:
            await asyncio.sleep(0.01)
    assert all(is_alive(int(line)) for line in lines)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    return [int(line) for line in lines]


async def test_what_ended_code_had_started_is_ended_too(pool: ChildPool) -> None:
    code = """
        import os, subprocess, time
        print(subprocess.Popen(["sleep", "300"]).pid)
        print(subprocess.Popen(["sleep", "300"], start_new_session=True).pid)
        print(os.getpid(), flush=True)
        time.sleep(300)
        """
    assert [is_alive(pid) for pid in await cancelled_after(pool, 3, dedent(code))] == [False, False, False]


async def test_code_that_forks_and_forks_is_ended_whole(pool: ChildPool, tmp_path: Path) -> None:
    code = """
import os, time
for _ in range(5):
    os.fork()
    os.setsid() if os.getsid(0) != os.getpid() and os.getpgid(0) != os.getpid() else None
open(f"{folder}/{os.getpid()}", "w").close()
time.sleep(300)
"""
    task = asyncio.create_task(pool.python("1", Job(code, variables={"folder": str(tmp_path)}), lambda _: None))
    async with asyncio.timeout(20):
        while len(os.listdir(tmp_path)) < 32:
            await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [pid for pid in os.listdir(tmp_path) if is_alive(int(pid))] == []


async def test_who_is_cancelled_twice_still_leaves_nothing(pool: ChildPool) -> None:
    await run(pool, "result = 1")
    works = [run(pool, "import time\ntime.sleep(300)"), pool.command(["sleep", "300"], env={})]
    running = [asyncio.create_task(one) for one in works]
    await asyncio.sleep(0.05)
    for _ in range(2):
        for task in running:
            task.cancel()
        await asyncio.sleep(0)
    assert all(
        isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*running, return_exceptions=True)
    )


async def test_code_that_forks_answers_once(pool: ChildPool) -> None:
    for number in range(5):
        assert (await run(pool, "import os\nos.fork()\nresult = n", n=number)).result == number


async def test_a_large_job_and_a_large_answer(pool: ChildPool) -> None:
    text = "x" * 20_000_000
    assert (await run(pool, "result = text + 'y'", text=text)).result == text + "y"


async def test_an_answer_beyond_the_limit_is_an_error_and_ends_the_child() -> None:
    pool = ChildPool()
    try:
        first = (await run(pool, WHO)).result
        outcome = await run(pool, f"result = 'x' * {MOST_BYTES + (2 << 20)}")
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.code) == ("schema", "RESULT_TOO_LARGE")
        assert f"at most {MOST_BYTES:,} are accepted" in outcome.error.message
        assert (await run(pool, WHO)).result != first
    finally:
        await pool.close()


async def test_a_frame_that_claims_too_much_is_refused_before_it_is_read(pool: ChildPool) -> None:
    code = """
import os, stat, struct, time
for fd in map(int, os.listdir("/proc/self/fd")):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.write(fd, struct.pack(">I", size))
    except OSError:
        pass
time.sleep(300)
"""
    async with asyncio.timeout(60):
        outcome = await run(pool, code, size=MOST_BYTES + (2 << 20))
    assert outcome.error is not None
    assert outcome.error.code == "PY_GARBLED"
    assert (await run(pool, "result = 1")).result == 1


async def test_many_lines_do_not_stop_the_code(pool: ChildPool) -> None:
    lines: list[str] = []
    await pool.python("1", Job("for n in range(20000): print(n)"), lines.append)
    assert lines == [str(number) for number in range(20000)]


async def test_the_nursery_may_die(pool: ChildPool) -> None:
    outcome = await run(pool, "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(300)")
    assert outcome.error is not None
    assert outcome.error.code == "PY_SIGKILL"
    assert (await run(pool, "result = 1")).result == 1


async def test_output_beyond_a_size_is_cut_and_the_program_goes_on(pool: ChildPool) -> None:
    ended = await pool.command(["sh", "-c", "head -c 500000 /dev/zero; echo end >&2"], env={})
    assert (ended.returncode, len(ended.stdout), ended.stderr, ended.cut) == (0, 1000, b"end\n", True)


async def test_a_program_that_reads_nothing_of_what_it_is_given(pool: ChildPool) -> None:
    ended = await pool.command(["true"], env={}, stdin=b"x" * 1_000_000)
    assert ended.returncode == 0


async def test_closing_ends_every_child() -> None:
    pool = ChildPool()
    pids = [(await run(pool, WHO, str(execution))).result for execution in range(3)]
    await pool.close()
    assert not any(is_alive(pid) for pid in pids)


async def test_spare_children_wait_for_the_next_execution(pool: ChildPool) -> None:
    pool.warm_up_soon(600)  # the first task needs them sooner
    nursery = (await run(pool, "import os; result = os.getppid()", "first")).result
    async with asyncio.timeout(20):
        while len(children_of(nursery)) < 3:
            await asyncio.sleep(0.01)
    waiting = children_of(nursery)
    assert {(await run(pool, WHO, execution)).result for execution in ("second", "third")} < waiting


async def test_many_short_tasks_share_few_children(pool: ChildPool) -> None:
    done = await asyncio.gather(*(run(pool, WHO) for _ in range(200)))
    assert len({outcome.result for outcome in done}) < 40


async def test_tasks_that_wait_for_each_other_all_have_a_child(pool: ChildPool, tmp_path: Path) -> None:
    code = """
        import os, time
        open(f"{folder}/{n}", "w").close()
        while len(os.listdir(folder)) < 40:
            time.sleep(0.01)
        result = n
    """
    async with asyncio.timeout(60):
        done = await asyncio.gather(*(run(pool, dedent(code), n=n, folder=str(tmp_path)) for n in range(40)))
    assert [outcome.result for outcome in done] == list(range(40))


async def test_a_task_that_waits_for_a_child_can_be_cancelled(pool: ChildPool, tmp_path: Path) -> None:
    code = "import time\nwhile not __import__('os').path.exists(flag): time.sleep(0.01)\nresult = 1"
    flag = tmp_path / "go"
    tasks = [asyncio.create_task(run(pool, code, flag=str(flag))) for _ in range(30)]
    await asyncio.sleep(0)
    for task in tasks[5:]:
        task.cancel()
    flag.touch()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, Outcome) and one.result == 1 for one in done[:5]] == [True] * 5
    assert all(isinstance(one, asyncio.CancelledError) for one in done[5:])
    assert (await run(pool, "result = 2")).result == 2


async def test_tasks_that_wait_in_a_closing_pool_are_told() -> None:
    pool = ChildPool()
    tasks = [asyncio.create_task(run(pool, "import time; time.sleep(60)")) for _ in range(8)]
    await asyncio.sleep(0)
    await pool.close()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(one) for one in done} <= {RuntimeError, Outcome}
    assert RuntimeError in {type(one) for one in done}


async def test_a_closed_pool_starts_no_child() -> None:
    pool = ChildPool()
    first = await pool.command(["sh", "-c", "echo $PPID"], env={})
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)  # the nursery is ending now
    pool.warm_up()
    for work in (run(pool, WHO), pool.command(["true"], env={})):
        with pytest.raises(RuntimeError, match="closed"):
            await work
    await closing
    assert not is_alive(int(first.stdout))


async def test_nothing_outlives_a_killed_worker(tmp_path: Path) -> None:
    """A killed worker's code, command and their children are gone in a second."""
    script = tmp_path / "worker.py"
    script.write_text(dedent(WORKER))
    worker = await asyncio.create_subprocess_exec(sys.executable, str(script), str(tmp_path))
    names = ("python", "python_child", "python_session", "python_daemon", "shell", "shell_session")
    async with asyncio.timeout(20):
        while not all((tmp_path / name).exists() and (tmp_path / name).read_text() for name in names):
            await asyncio.sleep(0.02)
    pids = {name: int((tmp_path / name).read_text()) for name in names}
    assert all(is_alive(pid) for pid in pids.values())
    worker.kill()
    await worker.wait()
    await asyncio.sleep(1)
    assert {name: is_alive(pid) for name, pid in pids.items()} == dict.fromkeys(names, False)


WORKER = """
    import asyncio, sys
    from noetl.ports import Job
    from noetl.worker.processes.children import ChildPool

    CODE = '''
    import os, subprocess, time
    def tell(name, pid):
        with open(folder + "/" + name, "w") as file:
            file.write(str(pid))
    tell("python_child", subprocess.Popen(["sleep", "300"]).pid)
    tell("python_session", subprocess.Popen(["sleep", "300"], start_new_session=True).pid)
    if os.fork() == 0:  # a daemon: forked twice, in a session of its own, with an empty environment
        os.setsid()
        if os.fork() == 0:
            tell("python_daemon", os.getpid())
            os.execve("/bin/sleep", ["sleep", "300"], {})
        os._exit(0)
    os.wait()
    tell("python", os.getpid())
    time.sleep(300)
    '''

    async def main(folder):
        pool = ChildPool()
        command = "echo $$ > shell; setsid sleep 300 & echo $! > shell_session; wait"
        await asyncio.gather(
            pool.python("1", Job(CODE, variables={"folder": folder}), print),
            pool.command(["sh", "-c", command], env={}, cwd=folder),
        )

    asyncio.run(main(sys.argv[1]))
    """


async def test_lines_are_cut_where_they_end_and_where_they_are_too_long() -> None:
    lines, told = Lines(), list[str]()
    log = told.append
    lines.begin(log, is_marked=False)
    for part in (b"on", b"e\r\ntwo\nth", b"ree", b"x" * 20_000, b"y" * 20_000, b"\n", "ö".encode() * 9_000, b"\nfour"):
        lines.take(part)
    lines.finish(log)
    assert told == ["one", "two", "three" + "x" * (16_384 - 5) + "…", "ö" * 8_192 + "…", "four"]
    lines.begin(log, is_marked=False)
    lines.take(b"x" + "ö".encode() * 9_000)
    lines.finish(log)
    assert told[-1] == "x" + "ö" * 8_191 + "…"


async def test_reasons() -> None:
    assert reason(2) == ("ended itself with exit code 2", "EXIT_2")
    assert reason(-signal.SIGABRT) == ("was killed by SIGABRT", "SIGABRT")
    assert reason(-63)[1].startswith("SIG")
