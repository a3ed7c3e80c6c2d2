"""Runs the workloads on NoETL and on its peers, in turns on the same machine, and prints numbers and ratios.

    python bench/run.py [--peer NAME]... [--workload W1]... [--form embedded]... [--scale full] [--rounds 3] [--json]
                        [--save [NAME]] [--check] [--flame]

Without `--peer` all peers take part; `--peer none` leaves them out. Every side is started for each round and ended after it, so
that nobody idles beside another. The sides take turns: all of them once, then all of them again. `--save` keeps the numbers in
bench/results/. `--check` compares the ratios with bench/results/baseline.json and ends with 1 where one lost more than 15 %.
`--flame` measures nothing: it draws where NoETL's processor time goes in W1 to W3. Tested in tests/bench/test_run.py.
"""

from __future__ import annotations

import argparse
import datetime
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import flame, ours, report
from bench.limits import flush_ms
from bench.machine import machine
from bench.peers.environments import PEERS, Peer, SetUpError, measured, set_up
from bench.peers.side import Seen
from bench.results import BASELINE, FOLDER, Result, Results, lost
from bench.workloads import SCALES, WORKLOADS, Workload, figures
from tests.services import PostgresServer, postgres_server

Side = Callable[[Workload, int, str, str], Seen]


class Runner:
    """One run: its sides, its database server, and what it has found."""

    def __init__(self, given: argparse.Namespace, server: PostgresServer, sides: dict[str, Side]) -> None:
        self.given, self.server, self.sides = given, server, sides
        self.databases = 0
        self.results: list[Result] = []

    def run(self, workload: Workload) -> None:
        """Measure a workload on every side, in turns; what failed once is not tried again."""
        size = workload.size(self.given.scale)
        names = [name for name in self.sides if name in ours.FORMS or workload.peers]
        seen: dict[str, list[dict[str, float]]] = {}
        limits: dict[str, list[dict[str, float]]] = {}
        problems: dict[str, str] = {}
        for _ in range(1 if workload.once else self.given.rounds):
            for name in names:
                if name in problems:
                    continue
                found = self._once(name, workload, size)
                if problem := found.get("failed") or found.get("absent"):
                    problems[name] = problem
                    continue
                limit = found.pop("limit", None)
                if limit is not None:
                    limits.setdefault(name, []).append(figures(workload.name, size, limit))
                seen.setdefault(name, []).append(figures(workload.name, size, found))
        for name in names:
            rounds = () if name in problems else seen[name]
            self.results.append(Result.of(name, workload.name, size, rounds, problems.get(name, "")))
            if name in limits:
                self.results.append(Result.of(f"limit-{name}", workload.name, size, limits[name]))

    def _once(self, name: str, workload: Workload, size: int) -> Seen:
        self.databases += 1
        database = f"bench_{self.databases}"
        self.server.create(database)
        begun = time.perf_counter()
        try:
            with tempfile.TemporaryDirectory() as folder:
                found = self.sides[name](workload, size, folder, self.server.address(database))
        except Exception as error:  # noqa: BLE001 -- whatever a side does, the others are measured
            found = {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
        self.server.drop(database)
        numbers = found if "failed" in found or "absent" in found else figures(workload.name, size, found)
        shown = ", ".join(
            f"{key} {report.number(value) if isinstance(value, float) else value}" for key, value in numbers.items()
        )
        print(f"{workload.name} {name}: {shown} ({time.perf_counter() - begun:.1f} s)", file=sys.stderr)
        return found


def own_side(form: str, server: PostgresServer) -> Side:
    def measure(workload: Workload, size: int, folder: str, database: str) -> Seen:
        return ours.measured(workload.name, size, ours.Place(form, folder, database, server.process_id))

    return measure


def peer_side(peer: Peer) -> Side:
    """Set a peer up; one that cannot be is a side that says why."""
    try:
        python = set_up(peer)
    except SetUpError as error:
        reason = str(error)
        return lambda *_: {"failed": reason}
    return lambda workload, size, folder, database: measured(peer, python, workload.name, size, folder, database)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", choices=[*PEERS, "none"])
    parser.add_argument("--workload", action="append", choices=WORKLOADS)
    parser.add_argument("--form", action="append", choices=ours.FORMS)
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--note", default="", help="something to know about this run: who else used the machine")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", nargs="?", const="", help="keep the results, by default under the date of today")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--flame", action="store_true")
    parser.add_argument("--seconds", type=int, default=5, help="how long `--flame` looks at each workload")
    return parser.parse_args(given)


def run(given: argparse.Namespace) -> Results:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = stack.enter_context(postgres_server(fsync="on"))
        sides = {form: own_side(form, server) for form in given.form or ours.FORMS}
        peers = [name for name in given.peer or PEERS if name != "none"]
        sides |= {name: peer_side(PEERS[name]) for name in peers}
        runner = Runner(given, server, sides)
        flushes = [flush_ms(folder)]
        for name in given.workload or WORKLOADS:
            runner.run(WORKLOADS[name])
            flushes.append(flush_ms(folder))
        return Results(
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            machine=machine(server.address()),
            note=given.note,
            scale=given.scale,
            rounds=given.rounds,
            versions={name: PEERS[name].versions for name in peers},
            flush_ms=(min(flushes), max(flushes)),
            results=tuple(runner.results),
        )


def draw(given: argparse.Namespace) -> None:
    """Draw flame graphs, and print the shares."""
    with tempfile.TemporaryDirectory() as folder, postgres_server(fsync="on") as server:
        forms = given.form or ours.FORMS
        places = [ours.Place(form, folder, server.address(), server.process_id) for form in forms]
        for name, drawn in flame.draw(given.workload or flame.DRAWN, places, given.seconds).items():
            print(f"{name}: {report.shares(drawn)}")


def main() -> None:
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended, and folders are removed
    if given.flame:
        draw(given)
        return
    if given.check and not BASELINE.exists():
        sys.exit(f"there is no {BASELINE.name} to compare with: make it on this machine by `--save {BASELINE.stem}`")
    results = run(given)
    if given.save is not None:
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{given.save or results.date}.json").write_text(results.text(), encoding="utf-8")
    print(results.text() if given.json else report.console(results))
    if given.check:
        found = lost(results, Results.read(BASELINE))
        print("\n".join(found) or "no ratio lost more than 15 % against the baseline")
        sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
