"""Commands against a cluster: pause, signal, cancel, drain, SIGTERM and follow."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.acceptance.run import Ran, noetl
from tests.cluster.cluster import Cluster
from tests.cluster.ledger import Ledger
from tests.cluster.load import HEAD, SLOW, Load, loading, surely, told, until

pytestmark = pytest.mark.asyncio
TWICE = HEAD.format("twice") + (
    "workflow:\n"
    "  - {step: ask, tool: {kind: wait, signal: go}, next: [one, two]}\n"
    "  - {step: one, tool: {kind: noop}}\n  - {step: two, tool: {kind: noop}}\n"
)
SQL = HEAD.format("sql") + (
    "workflow:\n  - {step: it, tool: {kind: postgres, auth: pg_main, query: \"SELECT '{{ workload.n }}', pg_sleep(600)\"}}\n"
)
SHELL = HEAD.format("shell") + (
    "workflow:\n  - {step: it, tool: {kind: shell, cmds: ['sleep 600 & echo $$ $! > {{ workload.n }}.pids; wait']}}\n"
)
PYTHON = HEAD.format("python") + (
    "workflow:\n  - step: it\n    tool:\n      kind: python\n      input: {n: '{{ workload.n }}'}\n      code: |\n"
    "        import os, time\n        open(n + '.pids', 'w').write(str(os.getpid()))\n        time.sleep(600)\n"
)
ENDLESS = {"slow": SLOW, "sql": SQL, "shell": SHELL, "python": PYTHON}


async def command(system: Cluster, *words: str) -> Ran:
    return await asyncio.to_thread(noetl, *words, cwd=system.folder, NOETL_SERVER_URL=",".join(system.servers))


async def done(system: Cluster, *words: str) -> str:
    ran = await command(system, *words)
    assert ran.code == 0, ran
    return ran.out


async def test_an_execution_is_paused_signalled_and_goes_on(shaken: Cluster, book: Ledger) -> None:
    with told(shaken, 0):
        async with loading(shaken, book) as load:
            await load.register(TWICE)
            started = await load.other("twice")
            await load.until_event([started], "step.suspended")
            await done(shaken, "pause", started)
            await done(shaken, "signal", started, "go", '{"by": "ada"}')
            await load.until_event([started], "signal.received")
            status = json.loads(await done(shaken, "status", started, "--json"))
            assert status["status"] == "paused"
            scheduled = await load.clients[0].events(started, types=("step.scheduled",))
            assert {event.entity_id for event in scheduled} == {"ask"}
            await done(shaken, "unpause", started)
            assert await load.ended(started) == {started: "completed"}
            await load.hold()


async def test_cancelled_executions_really_end_what_their_tools_do(shaken: Cluster, book: Ledger) -> None:
    with told(shaken, 0):
        async with loading(shaken, book) as load:
            await load.clients[0].put_credential("pg_main", {"dsn": shaken.database})
            await load.register(*ENDLESS.values())
            started = {name: await load.other(name) for name in ENDLESS}
            for name, one in started.items():
                await until(lambda: under_way(load, name, one), bool, f"the {name} task")  # noqa: B023
            await done(shaken, "cancel", started.pop("slow"), "--reason", "enough")
            for one in started.values():
                await load.clients[1].cancel(one, "enough")
            for one, name in zip(load.others, ENDLESS, strict=True):
                is_over = f"the end of the {name} task"
                await until(lambda: under_way(load, name, one), lambda found: not found, is_over)  # noqa: B023
            assert set((await load.ended()).values()) == {"cancelled"}
            await load.hold()


async def test_what_tasks_started_dies_with_a_killed_worker(shaken: Cluster, book: Ledger) -> None:
    with told(shaken, 0):
        async with loading(shaken, book) as load:
            await load.register(SHELL, PYTHON)
            for name in ("shell", "python"):
                started = await load.other(name)
                pids = await until(lambda: under_way(load, name, started), bool, f"the {name} task")  # noqa: B023
                [worker] = [one for one in shaken.working if started in await load.leased_by(one.name)]
                worker.kill()
                try:
                    await until(lambda: running(pids), lambda found: not found, f"the end of {name}")  # noqa: B023
                finally:
                    worker.start()
                await load.clients[0].cancel(started)
                assert await load.ended(started) == {started: "cancelled"}
            await load.hold()


async def running(pids: list[str]) -> list[str]:
    return [pid for pid in pids if is_running(pid)]


async def under_way(load: Load, name: str, started: str) -> list[Any]:
    """Return the activity of a task of this kind: requests, queries or processes."""
    number = load.others[started]
    if name == "slow":
        path = f"/slow/{number}/it"
        return load.ledger.asked.get(path, []) if path not in load.ledger.hung_up else []
    if name == "sql":
        async with await psycopg.AsyncConnection.connect(load.system.database) as connection:
            found = await connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE %s",
                (f"%{number}%pg_sleep%",),
            )
            return list(await found.fetchall())
    file = load.system.folder / f"{number}.pids"
    return await running(file.read_text().split() if file.exists() else [])


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


async def _until_gone(load: Load, worker: str) -> None:
    async def statuses() -> dict[str, str]:
        return {row.worker_id: row.status for row in await surely(load.clients[0].workers)}

    await until(statuses, lambda found: found[worker] == "gone", f"the end of {worker}")
    listed = await done(load.system, "worker", "list", "--json")
    assert {row["worker_id"]: row["status"] for row in map(json.loads, listed.splitlines())}[worker] == "gone"


async def test_a_drained_worker_ends_what_it_has_and_takes_no_more(shaken: Cluster, book: Ledger) -> None:
    drained = shaken.working[0]
    with told(shaken, 0):
        async with loading(shaken, book) as load:
            await load.register(SLOW)
            slow = [await load.other("slow") for _ in range(9)]
            await load.until_asked(slow)
            mine = await load.leased_by(drained.name)
            assert mine
            assert drained.name in await done(shaken, "worker", "drain", drained.name)
            try:
                later = [await load.other("slow") for _ in range(3)]
                book.go.set()
                assert set((await load.ended()).values()) == {"completed"}
                assert await asyncio.to_thread(drained.wait) == 0
                assert all(len(book.asked[f"/slow/{load.others[one]}/it"]) == 1 for one in (*slow, *later))
                await _until_gone(load, drained.name)  # until then it may come back
            finally:
                drained.kill()
                drained.start()
            await load.hold()
            await load.until_worked_by(drained.name)


@pytest.mark.parametrize("in_time", [True, False])
async def test_a_worker_that_is_told_to_end_finishes_or_gives_back(
    shaken: Cluster, book: Ledger, in_time: bool
) -> None:
    ending = shaken.working[1]
    with told(shaken, 0):
        async with loading(shaken, book) as load:
            await load.register(SLOW)
            slow = [await load.other("slow") for _ in range(9)]
            await load.until_asked(slow)
            mine = await load.leased_by(ending.name)
            assert mine
            said = ending.log.count("stopping")
            ending.ask_to_end()
            try:
                await asyncio.to_thread(ending.until, r"noetl: stopping, \d+ tasks running", said + 1)
                if in_time:
                    book.go.set()
                assert await asyncio.to_thread(ending.wait) == 0
                if not in_time:
                    await load.until_nothing_is_leased_by(ending.name)
                    book.go.set()
                assert set((await load.ended()).values()) == {"completed"}
                times = {len(book.asked[f"/slow/{load.others[one]}/it"]) for one in mine}
                assert times == ({1} if in_time else {2})
                late = [await load.clients[0].events(one, types=("report.late",)) for one in slow]
                assert not any(late)
            finally:
                ending.kill()
                ending.start()
            await load.hold()
            await load.until_worked_by(ending.name)


async def test_a_server_restarts_while_somebody_follows(shaken: Cluster, book: Ledger) -> None:
    with told(shaken, 0):
        async with loading(shaken, book) as load:
            await load.register(SLOW)
            number = "4711"
            words = ["exec", "faults/slow", "--follow", "--set", f"n={number}", "--set", f"api={book.url}"]
            following = subprocess.Popen(
                [sys.executable, "-m", "noetl", *words, "--server", shaken.servers[0]],
                cwd=shaken.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

            async def asked() -> list[str]:
                return book.asked.get(f"/slow/{number}/it", [])

            with following:
                try:
                    await until(asked, bool, "the request")
                    shaken.serving[0].kill()
                    shaken.serving[0].start()
                    await asyncio.to_thread(shaken.serving[0].until, r"noetl: http://\S+", shaken.serving[0].kills + 1)
                    book.go.set()
                    out, err = await asyncio.to_thread(following.communicate, timeout=60)
                finally:
                    following.kill()
            assert following.returncode == 0, err
            assert "completed" in err
            assert json.loads(out)["status"] == 200
            await load.hold()
