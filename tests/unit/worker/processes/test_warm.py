"""Jobs that wait in the socket of a child: each begins once, in order."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from noetl.ports import Job
from noetl.worker.processes.children import ChildPool
from noetl.worker.processes.fork_server import mark_text
from noetl.worker.processes.sandbox import problem
from noetl.worker.processes.warm import Lines

pytestmark = pytest.mark.asyncio

MANY = 300
SANDBOXES = [
    "none",
    pytest.param("landlock", marks=pytest.mark.skipif(problem("landlock") is not None, reason="no Landlock here")),
]


@pytest_asyncio.fixture(params=SANDBOXES)
async def pool(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ChildPool]:
    made = ChildPool(sandbox=request.param, writable=[str(tmp_path)])
    await made.python("1", Job("result = 0"), print)  # how long a task takes is known from here on
    try:
        yield made
    finally:
        await made.close()


def _begun(folder: Path) -> Counter[str]:
    """Count how often each job began; each wrote its number at once."""
    path = folder / "begun"
    return Counter(path.read_text().split()) if path.exists() else Counter()


def _job(folder: Path, number: int, then: str = "") -> Job:
    path = str(folder / "begun")
    code = f"import os\nfd = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
    code += f"os.write(fd, b'{number} ')\nos.close(fd)\n{then}\nresult = [{number}, os.getpid()]"
    return Job(code)


async def test_many_jobs_share_few_children_and_each_has_its_own_lines(pool: ChildPool) -> None:
    logs: list[list[str]] = [[] for _ in range(MANY)]
    code = "import os, subprocess\nprint('a', n)\nos.write(2, b'partly %d' % n)"
    code += "\nif n % 50 == 0: subprocess.run(['echo', f' and {n}'])\nresult = [n, os.getpid()]"
    jobs = [Job(code, variables={"n": number}) for number in range(MANY)]
    outcomes = await asyncio.gather(*(pool.python("1", job, logs[at].append) for at, job in enumerate(jobs)))
    assert [outcome.result[0] for outcome in outcomes] == list(range(MANY))
    assert len({outcome.result[1] for outcome in outcomes}) < MANY / 4
    for number, log in enumerate(logs):
        assert log == [f"a {number}", f"partly {number} and {number}" if number % 50 == 0 else f"partly {number}"]


async def test_a_long_job_does_not_hold_up_those_behind_it(pool: ChildPool, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    wait = f"import time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.001)"
    jobs = [_job(tmp_path, number, wait if number in (20, 21, 40) else "") for number in range(MANY)]
    running = [asyncio.ensure_future(pool.python("1", job, print)) for job in jobs]
    short = [task for number, task in enumerate(running) if number not in (20, 21, 40)]
    async with asyncio.timeout(30):
        await asyncio.wait(short)
    assert not any(running[number].done() for number in (20, 21, 40))
    gate.touch()
    assert [outcome.result[0] for outcome in await asyncio.gather(*running)] == list(range(MANY))
    assert set(_begun(tmp_path).values()) == {1}


@pytest.mark.parametrize("ends", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
async def test_a_child_that_ends_takes_only_its_own_job_along(pool: ChildPool, tmp_path: Path, ends: str) -> None:
    jobs = [_job(tmp_path, number, ends if number % 30 == 7 else "") for number in range(MANY)]
    outcomes = await asyncio.gather(*(pool.python("1", job, print) for job in jobs))
    for number, outcome in enumerate(outcomes):
        assert (outcome.error is not None) == (number % 30 == 7), (number, outcome)
    assert _begun(tmp_path) == Counter(map(str, range(MANY)))


@pytest.mark.parametrize(
    "leaves",
    [
        "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()",
        "import subprocess\nsubprocess.Popen(['sleep', '60'])",
    ],
)
async def test_no_job_runs_beside_what_another_left(pool: ChildPool, tmp_path: Path, leaves: str) -> None:
    jobs = [_job(tmp_path, number, leaves if number % 30 == 7 else "") for number in range(MANY)]
    outcomes = await asyncio.gather(*(pool.python("1", job, print) for job in jobs))
    assert [outcome.result[0] for outcome in outcomes] == list(range(MANY))
    left = {outcome.result[1] for number, outcome in enumerate(outcomes) if number % 30 == 7}
    assert len(left) == MANY // 30
    order = list(map(int, (tmp_path / "begun").read_text().split()))
    for pid in left:
        numbers = [number for number in order if outcomes[number].result[1] == pid]
        assert [number % 30 == 7 for number in numbers].index(True) == len(numbers) - 1, numbers  # it was its last
    assert _begun(tmp_path) == Counter(map(str, range(MANY)))


async def test_a_cancelled_job_disturbs_no_other(pool: ChildPool, tmp_path: Path) -> None:
    wait = "import time\ntime.sleep(60)"
    jobs = [_job(tmp_path, number, wait if number == 10 else "") for number in range(MANY)]
    running = [asyncio.ensure_future(pool.python("1", job, print)) for job in jobs]
    while not _begun(tmp_path)["5"]:
        await asyncio.sleep(0)
    cancelled = [number for number in range(10, MANY, 7) if not running[number].done()]
    for number in cancelled:
        running[number].cancel()
    assert 10 in cancelled
    async with asyncio.timeout(30):
        outcomes = await asyncio.gather(*running, return_exceptions=True)
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, BaseException):
            assert number in cancelled
        else:
            assert outcome.result[0] == number
    assert not [number for number in range(MANY) if number not in cancelled and _begun(tmp_path)[str(number)] != 1]
    assert max(_begun(tmp_path).values()) == 1


async def test_a_job_goes_on_if_the_one_before_it_is_cancelled_as_it_answers(pool: ChildPool, tmp_path: Path) -> None:
    """The worker has not read the answer, and the child runs the next job."""
    gates = [tmp_path / "first", tmp_path / "second"]
    waits = [f"import time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.001)" for gate in gates]
    first = asyncio.ensure_future(pool.python("1", _job(tmp_path, 1, waits[0]), print))
    async with asyncio.timeout(30):
        while not _begun(tmp_path)["1"]:
            await asyncio.sleep(0.001)
        pool._crews["1"]._pace = 0.0  # so the next one waits behind it
        second = asyncio.ensure_future(pool.python("1", _job(tmp_path, 2, waits[1]), print))
        while not any(len(warm.jobs) == 2 for warm in pool._crews["1"].children):
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)  # it is to be withdrawn
        gates[0].touch()
        while not _begun(tmp_path)["2"]:
            time.sleep(0.001)  # and the worker reads no answer before
        await asyncio.wait([first])
        gates[1].touch()
        assert (await second).result[0] == 2
    assert _begun(tmp_path) == Counter(["1", "2"])


async def test_no_child_is_started_for_a_cancelled_job(pool: ChildPool, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    wait = f"import time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.001)"
    count = max(2, os.cpu_count() or 2)
    running = [asyncio.ensure_future(pool.python("1", _job(tmp_path, at, wait), print)) for at in range(count)]
    async with asyncio.timeout(30):
        while len(_begun(tmp_path)) < count:
            await asyncio.sleep(0.001)
    late = asyncio.ensure_future(pool.python("1", _job(tmp_path, count), print))
    await asyncio.sleep(0)
    late.cancel()
    await asyncio.sleep(0.1)  # several looks
    gate.touch()
    await asyncio.gather(*running)
    assert not pool._crews


@pytest.mark.parametrize(
    "touch",
    [
        "import contextlib\nfor fd in range(3, 40):\n  with contextlib.suppress(OSError): os.write(fd, b'{}')",
        "import contextlib\nfor fd in range(3, 40):\n  with contextlib.suppress(OSError): os.write(fd, b'x' * 100)",
        "os.closerange(3, 40)",
    ],
)
async def test_code_that_uses_the_channel_makes_no_result_wrong(pool: ChildPool, tmp_path: Path, touch: str) -> None:
    jobs = [_job(tmp_path, number, touch if number % 40 == 7 else "") for number in range(MANY)]
    async with asyncio.timeout(60):
        outcomes = await asyncio.gather(*(pool.python("1", job, print) for job in jobs))
    for number, outcome in enumerate(outcomes):
        assert outcome.error is not None or outcome.result[0] == number, (number, outcome)
    victims = [number for number, outcome in enumerate(outcomes) if outcome.error is not None and number % 40 != 7]
    assert len(victims) <= MANY // 40 + 1  # of each such job, one that ran when its child ended
    assert _begun(tmp_path) == Counter(map(str, range(MANY)))


async def test_large_jobs_and_answers_come_whole_between_small_ones(pool: ChildPool) -> None:
    sizes = [300_000 if number % 10 == 3 else 10 for number in range(60)]
    jobs = [Job("result = [n, text[::-1]]", variables={"n": at, "text": "x" * size}) for at, size in enumerate(sizes)]
    outcomes = await asyncio.gather(*(pool.python("1", job, print) for job in jobs))
    assert [(outcome.result[0], len(outcome.result[1])) for outcome in outcomes] == list(enumerate(sizes))


async def test_jobs_of_another_execution_have_other_children(pool: ChildPool) -> None:
    job = Job("import os\nresult = os.getpid()")
    ran = await asyncio.gather(*(pool.python(str(number % 3), job, print) for number in range(60)))
    pids = [{outcome.result for outcome in ran[at::3]} for at in range(3)]
    assert sum(map(len, pids)) == len(set.union(*pids))


@pytest.mark.parametrize("size", [1, 2, 7, 10_000, 70_000])
async def test_a_mark_is_found_wherever_the_output_is_cut(size: int) -> None:
    lines, first, second = Lines(), list[str](), list[str]()
    logs = (first.append, second.append)
    lines.begin(logs[0], is_marked=False)
    lines.begin(logs[1], is_marked=True)
    text = b"one\n" + b"x" * 40_000 + mark_text(lines.mark) + b"\ntwo\nrest"
    for start in range(0, len(text), size):
        lines.take(text[start : start + size])
    lines.finish(logs[0])
    assert not [line for line in (*first, *second) if "noetl:" in line]
    assert (first, second) == (["one", "x" * 16_384 + "…"], ["two"])
    lines.finish(logs[1])
    assert second == ["two", "rest"]


@pytest.mark.parametrize("cancels_first", [True, False])
async def test_nothing_stays_open_after_a_task_that_was_running(tmp_path: Path, cancels_first: bool) -> None:
    before = len(os.listdir("/proc/self/fd"))
    pool = ChildPool()
    long = asyncio.ensure_future(pool.python("1", _job(tmp_path, 0, "import time\ntime.sleep(60)"), print))
    while not _begun(tmp_path):
        await asyncio.sleep(0.001)
    if cancels_first:
        long.cancel()
    await pool.close()
    assert len(os.listdir("/proc/self/fd")) <= before
    await asyncio.gather(long, return_exceptions=True)


async def test_nothing_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        pool = ChildPool()
        jobs = [_job(tmp_path, number, "os._exit(1)" if number % 9 == 0 else "") for number in range(40)]
        await asyncio.gather(*(pool.python("1", job, print) for job in jobs))
        await pool.close()
    assert len(os.listdir("/proc/self/fd")) <= before
