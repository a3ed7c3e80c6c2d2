"""Watch the memory of NoETL under an hour of real work.

    python bench/memory.py [--minutes 60] [--pace 8] [--save]

Both forms run at the same time and get the same load: eight executions a second in turns of `python` steps, a loop over HTTP
and `python`, an INSERT, a loop over rows, a CSV file over `duckdb` into PostgreSQL, a signal, child playbooks and a sleep.
The resident memory of server and worker is read every ten seconds, with what the processes of tasks have of their own.
`--save` writes the series to bench/results/memory.json, from which docs/reference/benchmarks.md shows one value per ten
minutes. Tested in tests/bench/test_memory.py.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec

from bench import workloads
from bench.peers.side import CREATE, CREATE_SALES, below, until, write_sales
from bench.peers.web import web_server
from bench.results import FOLDER
from bench.system import Client, Place, System
from tests.services import PostgresServer, postgres_server

PATH = FOLDER / "memory.json"
FORMS = ("embedded", "cluster")
CLIENTS = 4
EVERY_S = 10.0
SETTLED = 10  # minutes after which memory must not grow
SMALL_MB = 0.1


class Watched(msgspec.Struct):
    """What one form did, and its memory: minutes, then MB per name of a process."""

    executions: int
    minutes: list[float]
    mb: dict[str, list[float]]


class Memory(msgspec.Struct):
    """A run: when, how many executions per second, and each form."""

    date: str
    pace: float
    forms: dict[str, Watched]

    @classmethod
    def kept(cls) -> Memory | None:
        """Return the run that was saved last."""
        return msgspec.json.decode(PATH.read_bytes(), type=cls) if PATH.exists() else None


class Load:
    """Starts executions of all kinds at a pace, and counts those that ended well."""

    def __init__(self, running: System, place: Place, web: str) -> None:
        client = Client(running.url)
        small = Path(place.folder) / "small.csv"
        write_sales(small, SMALL_MB)
        child = client.register(workloads.chain("child", 3))
        books = (
            workloads.adding("adding", 3),
            workloads.fetching("fetching", 20, web),
            workloads.saving("saving", web, place.database),
            workloads.transforming("transforming", 100),
            workloads.loading("loading", str(small), place.database),
            workloads.calling("calling", child, 3),
        )
        self._running = running
        self._jobs = [self._told(client.register(book)) for book in books]
        self._jobs += [
            self._signalled(client.register(workloads.waiting("waiting"))),
            self._slept(client.register(workloads.sleeping("sleeping"))),
        ]
        client.connection.close()
        self._numbers = count()
        self.ended = 0
        self.problem: BaseException | None = None

    def run(self, pace: float, executions: int) -> None:
        """Start executions at a pace, until one goes wrong."""
        begun = time.monotonic()
        clients = [threading.Thread(target=self._client, args=(pace, begun, executions)) for _ in range(CLIENTS)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()

    def _client(self, pace: float, begun: float, executions: int) -> None:
        client = Client(self._running.url)
        with closing(client.connection):
            while self.problem is None and (number := next(self._numbers)) < executions:
                time.sleep(max(0.0, begun + number / pace - time.monotonic()))
                try:
                    self._jobs[number % len(self._jobs)](client)
                except BaseException as error:  # noqa: BLE001 - the main thread raises it
                    self.problem = error
                self.ended += 1

    @staticmethod
    def _told(path: str) -> Callable[[Client], object]:
        return lambda client: client.run_told(path)

    @staticmethod
    def _slept(path: str) -> Callable[[Client], object]:
        def job(client: Client) -> None:
            asked = {"path": path, "payload": {"until": time.time() + 1}, "wait_ms": 30_000}
            assert client.ask("POST", "/api/execute", asked)["status"] == "completed"

        return job

    @staticmethod
    def _signalled(path: str) -> Callable[[Client], object]:
        def job(client: Client) -> None:
            started = client.start(path)
            until(lambda: client.ask("GET", f"/api/executions/{started}")["status"] == "waiting", patience=30)
            client.ask("POST", f"/api/executions/{started}/signal", {"name": "go", "data": {"n": 1}})
            client.until_completed(started)

        return job


def memory_mb(running: System) -> dict[str, float]:
    """Return the memory of each process, and what those of tasks have of their own."""
    found = running.memory_mb()
    own = [pids[0] for name, pids in running.processes.items() if name != "postgres"]
    return {**found, "tasks": sum(_own_mb(pid) for one in own for pid in below(one))}


def _own_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it has ended
        return 0.0
    return sum(map(int, re.findall(r"Private_\w+:\s+(\d+)", text))) / 1024


def watch(form: str, server: PostgresServer, web: str, pace: float, minutes: float) -> Watched:
    """Run one form under load."""
    import psycopg

    with tempfile.TemporaryDirectory() as folder:
        server.create(form)
        place = Place(form, folder, server.address(form), None)
        with psycopg.connect(place.database, autocommit=True) as connection:
            connection.execute(CREATE)
            connection.execute(CREATE_SALES)
        with place.system() as running:
            return _watched(Load(running, place, web), running, pace, minutes)


def _watched(load: Load, running: System, pace: float, minutes: float) -> Watched:
    found = Watched(0, [], {})
    begun = time.monotonic()
    loading = threading.Thread(target=load.run, args=(pace, round(pace * 60 * minutes)))
    loading.start()
    while loading.is_alive():
        loading.join(EVERY_S if minutes >= 1 else 0.2)
        found.minutes.append(round((time.monotonic() - begun) / 60, 2))
        for name, value in memory_mb(running).items():
            found.mb.setdefault(name, []).append(round(value, 1))
    if load.problem is not None:
        raise load.problem
    found.executions = load.ended
    return found


def growth_mb(watched: Watched, name: str) -> float:
    """Return how much more memory the last ten minutes have than the second ten."""
    series = list(zip(watched.minutes, watched.mb[name], strict=True))
    end = series[-1][0]
    early = [mb for minute, mb in series if SETTLED <= minute < 2 * SETTLED]
    late = [mb for minute, mb in series if minute > end - SETTLED]
    return statistics.median(late) - statistics.median(early) if early else 0.0


def section(memory: Memory) -> str:
    """Write the part of the page: the median of every ten minutes."""
    spans = range(0, int(max(one.minutes[-1] for one in memory.forms.values())), 10)
    heads = " | ".join(f"{span}–{span + 10}" for span in spans)
    about = f"The run of {memory.date}, by `bench/memory.py`: {memory.pace:g} executions a second in each form, both at the "
    about += (
        "same time. MB, the median of each ten minutes; `tasks` is what the processes of tasks have of their own.\n"
    )
    lines = [
        "## Memory under real work\n",
        about,
        f"| form | executions | process | {heads} | growth after minute {SETTLED} |",
        f"|---|---|---|{'---|' * len(spans)}---|",
    ]
    for form, watched in memory.forms.items():
        for name, series in watched.mb.items():
            cells = [_median(watched.minutes, series, span) for span in spans]
            row = [form, f"{watched.executions:,}", name, *cells, f"{growth_mb(watched, name):+.1f}"]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _median(minutes: Sequence[float], series: Sequence[float], span: int) -> str:
    found = [mb for minute, mb in zip(minutes, series, strict=True) if span <= minute < span + 10]
    return f"{statistics.median(found):.1f}" if found else ""


def main(arguments: Sequence[str]) -> Memory:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--pace", type=float, default=8, help="Executions per second in each form.")
    parser.add_argument("--save", action="store_true", help=f"Write the series to {PATH.name}.")
    given = parser.parse_args(arguments)
    found: dict[str, Watched] = {}
    problems: list[BaseException] = []

    def one(form: str) -> None:
        try:
            found[form] = watch(form, server, web, given.pace, given.minutes)
        except BaseException as error:  # noqa: BLE001 - raised below
            problems.append(error)

    with ExitStack() as stack:
        server, web = stack.enter_context(postgres_server()), stack.enter_context(web_server())
        threads = [threading.Thread(target=one, args=(form,)) for form in FORMS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if problems:
        raise problems[0]
    memory = Memory(time.strftime("%Y-%m-%d"), given.pace, {form: found[form] for form in FORMS})
    if given.save:
        PATH.write_bytes(msgspec.json.format(msgspec.json.encode(memory), indent=1) + b"\n")
    return memory


if __name__ == "__main__":
    print(section(main(sys.argv[1:])))
