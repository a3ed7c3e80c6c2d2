"""Run the workloads on NoETL and its peers in turns; print numbers and ratios.

    python bench/run.py [--peer NAME]... [--workload W1]... [--form embedded]... [--scale medium] [--rounds 3] [--json]
                        [--save [NAME]] [--add] [--check] [--flame]

Without `--peer` all peers take part; `--peer none` excludes them. Every side is started for each round and stopped after it,
so that no idle process disturbs another. The sides take turns, round by round; only peers that start slowly run all rounds
after one start. `--scale full` extends what needs no peer: five minutes of W10, a million events for W11. `--save` writes the
numbers to bench/results/; `--add` adds the workloads of this run to the newest results there. `--check` compares the ratios
with bench/results/baseline.json and exits with 1 on a loss of more than 15 %. `--flame` measures nothing: it draws flame
graphs of W1 to W3 and of R1, R5, R7 and R9. After Ctrl-C the workloads that every side has finished are reported. Tested in
tests/bench/test_run.py.
"""

from __future__ import annotations

import argparse
import datetime
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import flame, ours, report
from bench.limits import flush_ms, spin_ms
from bench.machine import machine
from bench.peers.environments import PEERS, Peer, SetUpError, measured, set_up
from bench.peers.side import Seen, stop
from bench.results import BASELINE, FOLDER, Result, Results, lost, unlike
from bench.system import Place
from bench.workloads import SCALES, WORKLOADS, Workload, figures
from tests.services import PostgresServer, postgres_server

Measure = Callable[[Workload, int, str, str, int], Seen]


@dataclass(frozen=True)
class Side:
    """One of those that are compared: a form of NoETL or a peer."""

    measure: Measure
    most: Mapping[str, int] = field(default_factory=dict)

    def size(self, workload: Workload, scale: str) -> int:
        wanted = workload.size(scale)
        return min(wanted, self.most.get(workload.name, wanted))


@dataclass
class Found:
    """What was found of one side for one workload."""

    rounds: list[Seen] = field(default_factory=list)
    flushes: list[float] = field(default_factory=list)
    problem: str = ""


class Runner:
    """One run: its sides, its database server, and what it has found."""

    def __init__(self, given: argparse.Namespace, server: PostgresServer, sides: dict[str, Side], folder: str) -> None:
        self.given, self.server, self.sides, self.folder = given, server, sides, folder
        self.databases = 0
        self.spins: list[float] = []
        self.results: list[Result] = []

    def run(self, workload: Workload) -> None:
        """Measure a workload on every side, in turns; what failed once is not tried again."""
        wanted = 1 if workload.once else self.given.rounds
        found = {name: Found() for name in self.sides if name in ours.FORMS or workload.has(name)}
        for turn in range(wanted):
            for name, one in found.items():
                if not one.problem and len(one.rounds) < wanted:
                    one.flushes.append(flush_ms(self.folder))
                    self.spins.append(spin_ms())
                    seen = self._measured(name, workload, wanted - turn)
                    one.problem = str(seen.get("failed") or seen.get("absent") or "")
                    one.rounds += [] if one.problem else seen.get("rounds", [seen])
        for name, one in found.items():
            self._keep(name, workload, one)

    def _keep(self, name: str, workload: Workload, found: Found) -> None:
        size = self.sides[name].size(workload, self.given.scale)
        limits = [figures(workload.name, size, one.pop("limit")) for one in found.rounds if "limit" in one]
        rounds = [figures(workload.name, size, one) for one in found.rounds]
        problem = f"round {len(rounds) + 1}: {found.problem}" if found.problem and rounds else found.problem
        self.results.append(Result.of(name, workload.name, size, rounds, problem, found.flushes))
        if limits:
            self.results.append(Result.of(f"limit-{name}", workload.name, size, limits))

    def _measured(self, name: str, workload: Workload, rounds: int) -> Seen:
        """Measure once, in a database of its own; a peer may give more rounds."""
        self.databases += 1
        database, side = f"bench_{self.databases}", self.sides[name]
        size, begun = side.size(workload, self.given.scale), time.perf_counter()
        self.server.create(database)
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                seen = side.measure(workload, size, folder, self.server.address(database), rounds)
                shown = "; ".join(_shown(figures(workload.name, size, one)) for one in _rounds(seen))
        except Exception as error:  # noqa: BLE001 -- whatever a side does, the others are measured
            seen = {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
            shown = ""
        self.server.drop(database)
        said = seen.get("failed") or seen.get("absent") or shown
        print(f"{workload.name} {name}: {said} ({time.perf_counter() - begun:.1f} s)", file=sys.stderr)
        return seen


def _rounds(seen: Seen) -> list[Seen]:
    return [] if "failed" in seen or "absent" in seen else seen.get("rounds", [seen])


def _shown(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {report.number(value)}" for name, value in numbers.items() if name != "limit")


def own_side(form: str, server: PostgresServer) -> Side:
    def measure(workload: Workload, size: int, folder: str, database: str, _rounds: int) -> Seen:
        return ours.measured(workload.name, size, Place(form, folder, database, server.process_id))

    return Side(measure)


def peer_side(peer: Peer) -> Side:
    """Set a peer up; one that cannot be is a side that says why."""
    try:
        python = set_up(peer)
    except SetUpError as error:
        reason = str(error)
        return Side(lambda *_: {"failed": reason}, peer.most)

    def measure(workload: Workload, size: int, folder: str, database: str, rounds: int) -> Seen:
        return measured(peer, python, workload.name, size, folder, database, rounds)

    return Side(measure, peer.most)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", choices=[*PEERS, "none"])
    parser.add_argument("--workload", action="append", choices=WORKLOADS)
    parser.add_argument("--form", action="append", choices=ours.FORMS)
    parser.add_argument("--scale", choices=SCALES, default="medium")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--note", default="", help="Note to store with this run, such as other load.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", nargs="?", const="", help="Save the results. [default name: today's date]")
    parser.add_argument("--add", action="store_true", help="Add these workloads to the newest saved results.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="File that `--check` compares with.")
    parser.add_argument("--flame", action="store_true")
    parser.add_argument(
        "--seconds", type=int, default=5, help="Seconds that `--flame` samples each workload. [default: 5]"
    )
    return parser.parse_args(given)


def run(given: argparse.Namespace) -> Results:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = stack.enter_context(postgres_server(fsync="on", max_connections="100"))
        sides = {form: own_side(form, server) for form in given.form or ours.FORMS}
        peers = [name for name in given.peer or PEERS if name != "none"]
        sides |= {name: peer_side(PEERS[name]) for name in peers}
        runner = Runner(given, server, sides, folder)
        about = machine(server.address())
        note = given.note
        try:
            for name in given.workload or WORKLOADS:
                runner.run(WORKLOADS[name])
        except SystemExit:  # what has been measured is not thrown away
            if not runner.results:
                raise
            note = f"{note} It was stopped before it had measured everything.".strip()
        flushes = [one.flush_ms for one in runner.results if one.flush_ms]
        return Results(
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            machine=about,
            note=note,
            scale=given.scale,
            rounds=given.rounds,
            versions={name: PEERS[name].versions for name in peers},
            flush_ms=(min(flushes), max(flushes)),
            results=tuple(runner.results),
            spin_ms=(min(runner.spins), max(runner.spins)),
        )


def keep(results: Results, given: argparse.Namespace) -> None:
    """Keep a run under its name, or put it into the newest one."""
    newest = Results.newest_path()
    if given.add and newest:
        newest.write_text(Results.read(newest).joined(results).text(), encoding="utf-8")
    elif given.save is not None or given.add:
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{given.save or results.date}.json").write_text(results.text(), encoding="utf-8")


def check(now: Results, baseline: Path) -> int:
    """Compare with the baseline; gives the exit code."""
    before = Results.read(baseline)
    if differs := unlike(now, before):
        print("\n".join(["this run cannot be compared with the baseline:", *differs]))
        return 1
    found = lost(now, before)
    print("\n".join(found) or "no ratio lost more than 15 % against the baseline")
    return 1 if found else 0


def draw(given: argparse.Namespace) -> None:
    """Draw flame graphs, and print the shares."""
    with tempfile.TemporaryDirectory() as folder, postgres_server(fsync="on") as server:
        forms = given.form or ours.FORMS
        places = [Place(form, folder, server.address(), server.process_id) for form in forms]
        for name, drawn in flame.draw(given.workload or flame.DRAWN, places, given.seconds).items():
            print(f"{name}: {report.shares(drawn)}")


def main() -> None:
    given = arguments()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, stop)  # what was started is ended, and folders are removed
    if given.flame:
        draw(given)
        return
    if given.check and not given.baseline.exists():
        sys.exit(f"there is no {given.baseline.name} to compare with: `make bench-baseline` makes it on this machine")
    results = run(given)
    keep(results, given)
    print(results.text() if given.json else report.console(results))
    if given.check:
        sys.exit(check(results, given.baseline))


if __name__ == "__main__":
    main()
