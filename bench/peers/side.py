"""Shared parts of the peers' scripts: arguments, processes, marks, JSON output.

It runs in the environment of the peer, so it uses the standard library alone. A script is called for one workload in one
round: `python -m bench.peers.NAME W1 --size 200 --folder F --database URL`. It starts what the peer needs, warms it up,
measures once, ends what it started, and prints what it has seen. One that takes long to start is called once with
`--rounds 3`, and gives what it has seen in each.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
STEP_S = 0.02  # what a step of W6 takes
SHORT = 5  # steps of an execution of W3
AT_ONCE = 50  # requests of R2 and R3
CREATE = "CREATE TABLE IF NOT EXISTS totals (amount INT)"  # of R3
INSERT = "INSERT INTO totals (amount) VALUES (%s)"
CREATE_SALES = (
    "CREATE TABLE IF NOT EXISTS sales (id BIGINT, customer TEXT, price DOUBLE PRECISION, amount INT, day DATE)"
)
SOLD = "SELECT * FROM read_csv('{path}')"  # of R6, by DuckDB
CHILD = 3  # steps of a child of R8
Seen = dict[str, Any]


@dataclass(frozen=True)
class Given:
    """The arguments of a script."""

    workload: str
    size: int
    folder: Path
    database: str
    backend: str
    rounds: int = 1

    @property
    def marks(self) -> Path:
        return self.folder / "marks"


def given() -> Given:
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--database", default="")
    parser.add_argument("--backend", default="")
    parser.add_argument("--rounds", type=int, default=1)
    found = parser.parse_args()
    return Given(found.workload, found.size, found.folder, found.database, found.backend, found.rounds)


def measure(
    told: Given, workloads: Mapping[str, Callable[[Given], Seen]], absent: Mapping[str, str] | None = None
) -> None:
    """Measure one workload and print what was seen, or say why it is not measured."""
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, stop)
    if told.workload not in workloads:
        print(json.dumps({"absent": (absent or {}).get(told.workload, "the peer has nothing like it")}))
        return
    print(json.dumps(workloads[told.workload](told)))


def stop(*_given: object) -> None:
    """End this process and its children on a signal; ignore further signals."""
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, signal.SIG_IGN)
    sys.exit(1)


def rounds(told: Given, once: Callable[[], Seen]) -> Seen:
    """Measure several rounds after one start, for peers that start slowly."""
    return {"rounds": [once() for _ in range(told.rounds)]}


def seconds(job: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    job()
    return time.perf_counter() - begun


def cost_of(job: Callable[[], Any]) -> Seen:
    """Return the seconds of a job, and the processor time of this process."""
    before = time.process_time()
    took = seconds(job)
    return {"seconds": took, "cpu_ms": 1000 * (time.process_time() - before)}


def cpu_ms(pid: int) -> float:
    """Return the processor time of a process and of its ended children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")


def cost_of_all(job: Callable[[], Any]) -> Seen:
    """Return the seconds of a job, and the processor time of all processes here.

    The web server of R2 and R3 is not counted.
    """
    own = [one for one in (os.getpid(), *below(os.getpid())) if b"bench.peers.web" not in _command(one)]

    def spent() -> float:
        return sum(map(cpu_ms, own))

    before = spent()
    took = seconds(job)
    return {"seconds": took, "cpu_ms": spent() - before}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def create_totals(told: Given) -> None:
    """Make the table of R3, for a peer whose environment has psycopg."""
    import psycopg

    with psycopg.connect(told.database, autocommit=True) as connection:
        connection.execute(CREATE)


def add(number: int) -> int:
    """Be the small function of R1, R4 and R5."""
    return number + 1


def total(item: Mapping[str, int]) -> int:
    """Be the small function of R2 and R3."""
    return item["price"] * item["count"]


def write_sales(path: Path, megabytes: float) -> int:
    """Write a CSV file of this size for R6; gives its number of rows."""
    left, number = int(megabytes * 1_000_000), 0
    with path.open("w") as file:
        left -= file.write("id,customer,price,amount,day\n")
        while left > 0:
            customer, price = f"customer {number * 7919 % 100_003}", number % 9_973 / 100
            day = f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}"
            left -= file.write(f"{number},{customer},{price},{number % 50},{day}\n")
            number += 1
    return number


def again(told: Given, module: str, workload: str) -> list[str]:
    """Return the command that runs a peer's script as its worker or application."""
    return [
        sys.executable, "-m", module, workload, "--size", str(told.size), "--folder", str(told.folder),
        "--database", told.database, "--backend", told.backend,
    ]  # fmt: skip


@contextmanager
def process(
    command: list[str], told: Given, *, name: str = "peer", **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process and those it starts; they are ended at the end."""
    with (told.folder / f"{name}.log").open("ab") as log:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, start_new_session=True,
            env={**os.environ, "DO_NOT_TRACK": "1", **environment},
        )  # fmt: skip
    try:
        yield started
    finally:
        end(started, signal.SIGTERM)


def end(started: subprocess.Popen[Any], how: signal.Signals) -> None:
    """End a process with those it started: its group, and what left the group."""
    under = below(started.pid)
    with suppress(ProcessLookupError):
        os.killpg(started.pid, how)
    with suppress(subprocess.TimeoutExpired):
        started.wait(2)  # what it would still write is thrown away
    with suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    for pid in under:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    started.wait()


def below(pid: int) -> list[int]:
    """Return all descendants of a process."""
    try:
        found = [
            int(one) for path in Path(f"/proc/{pid}/task").iterdir() for one in (path / "children").read_text().split()
        ]
    except OSError:
        return []
    return found + [under for one in found for under in below(one)]


def until(found: Callable[[], bool], *, patience: float = PATIENCE_S, every: float = 0.01) -> None:
    """Wait until something is so."""
    last = time.monotonic() + patience
    while not found():
        if time.monotonic() > last:
            raise TimeoutError(f"what was waited for did not happen within {patience:.0f} s")
        time.sleep(every)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as answer:
            return bool(answer.status < 500)
    except OSError:
        return False


def ask(method: str, url: str, body: Any = None, **headers: str) -> Any:
    """Ask a server that speaks JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
    with urlopen(request, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read())


def mark(path: Path, number: int) -> None:
    """Note that a step runs: its number, the process, the time."""
    with path.open("a") as file:
        file.write(f"{number} {os.getpid()} {time.time()}\n")


def marks(path: Path) -> list[tuple[int, int, float]]:
    if not path.exists():
        return []
    whole = path.read_text().rpartition("\n")[0].splitlines()
    return [(int(number), int(pid), float(at)) for number, pid, at in map(str.split, whole)]


def killed(
    told: Given, victim: subprocess.Popen[Any], start: Callable[[], Any], *, patience: float = PATIENCE_S
) -> Seen:
    """Kill a process after half of the steps, restart it, and wait for the last step."""
    until(lambda: len(marks(told.marks)) >= told.size // 2)
    end(victim, signal.SIGKILL)
    at = time.time()
    old = {pid for _, pid, _ in marks(told.marks)}
    start()
    try:
        until(lambda: any(number == told.size - 1 for number, _, _ in marks(told.marks)), patience=patience)
    except TimeoutError:
        return {"absent": f"it did not go on within {patience:.0f} s"}
    found = marks(told.marks)
    numbers = [number for number, _, _ in found]
    return {
        "first_step_s": min(when for _, pid, when in found if pid not in old) - at,
        "missing": told.size - len(set(numbers)),
        "doubled": len(numbers) - len(set(numbers)),
    }
