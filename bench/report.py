"""Render results: a table for the terminal and the page of the documentation.

scripts/docs.py makes the page from the newest file in bench/results/. Tested in tests/bench/test_results.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bench.flame import Flame
from bench.memory import Memory, section
from bench.peers.environments import PEERS
from bench.results import OURS, Results
from bench.screen import Measured, table
from bench.workloads import WORKLOADS, Figure, Workload


def console(results: Results) -> str:
    """Write a run as plain text."""
    lines = [f"{name:<12} {value}" for name, value in results.machine.items()]
    lines += [f"{name:<12} {value}" for name, value in probes(results).items()]
    lines += [f"{name:<12} {versions}" for name, versions in results.versions.items()]
    lines += [*([f"{'note':<12} {results.note}"] if results.note else []), ""]
    for name in results.workloads():
        workload = WORKLOADS[name]
        lines.append(f"{name} {workload.title} ({size(results, name):,}), {rounds(results, name)}")
        for one in results.results:
            if one.workload != name:
                continue
            shown = [
                f"{number(one.medians[figure.name])} {figure.unit}"
                for figure in workload.figures
                if figure.name in one.medians
            ]
            shown += [f"at a size of {one.size:,}"] if one.medians and one.size != size(results, name) else []
            shown += [f"flush {number(one.flush_ms)} ms"] if one.medians and one.flush_ms else []
            lines.append(f"  {one.side:<16} {', '.join(shown + [one.problem] * bool(one.problem))}")
        for form in OURS:
            ratios = [(other, results.better(form, other, name)) for other in results.others(form)]
            times = ", ".join(f"{ratio:.3g} × {other}" for other, ratio in ratios if ratio is not None)
            lines += [f"  {form} is better by: {times}"] if times else []
    return "\n".join(lines)


def size(results: Results, workload: str) -> int:
    return next(one.size for one in results.results if one.workload == workload)


def rounds(results: Results, workload: str) -> str:
    return "one round" if WORKLOADS[workload].once or results.rounds == 1 else f"median of {results.rounds}"


def probes(results: Results) -> dict[str, str]:
    """Describe the speed of disk and processor during the run."""
    (least, most), (quick, slow) = results.flush_ms, results.spin_ms
    return {
        "fdatasync": f"{least:.3f} to {most:.3f} ms, probed before each round",
        "additions": f"{quick:.1f} to {slow:.1f} ms for 300,000 of them in Python, probed before each round",
    }


def number(value: float) -> str:
    """Write a number with as many digits as count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


INTRODUCTION = """\
# Benchmarks

`make bench` runs the same work on NoETL and on other systems, in turns on the same machine, and prints ratios. Compare ratios
only: a flush of the disk takes from 0.05 to 4 ms, on different machines and at different hours. This page shows the newest run
in `bench/results/`. The tasks of W1 to W11 are no-ops, R1 to R9 are real work. Every system has its default durability.

- **embedded**: `noetl up` on SQLite with a flush for every commit; W5 and W6 are `noetl run` and `noetl resume`.
- **cluster**: `noetl serve`, one `noetl worker` over a WebSocket, PostgreSQL with `fsync` on.
- **limit**: a bare loop over the same driver that appends the bytes of NoETL's events in as many commits, right after each
  round. No durable system can be faster; if a form seems to be, the disk was slower a moment later.

A step differs between systems: in NoETL a worker runs it, and its events are committed before the next one starts.
"""


PARTS = {
    "noetl.engine": "decides, renders templates, drives the tasks of a step",
    "noetl.server": "batches messages into commits, caches states, leases work, answers requests",
    "noetl.worker": "claims, runs the tool, reports",
    "noetl.stores": "converts events and work to rows, and runs the statements",
    "noetl.client": "the worker's session with the server",
    "noetl.wire": "encodes and decodes frames and bodies",
    "database driver": "asyncpg: encodes parameters, decodes rows",
    "HTTP and sockets": "uvicorn, websockets and starlette",
    "event loop": "callbacks, reads and writes of sockets",
}
FLAMES = """\
## Where the time goes

Flame graphs of NoETL's processes, drawn by `python bench/run.py --flame`. A share is the part of the samples in
which that code held the interpreter. Waiting for the disk, for PostgreSQL or for another process is not included; the limit
above shows it. Point at a box to read its name.
"""


def shares(flame: Flame) -> str:
    """Format the shares of the parts, largest first."""
    return ", ".join(f"{part} {share:.0%}" for part, share in flame.shares.items() if share >= 0.01)


def functions(flame: Flame) -> str:
    """Format the hottest functions, each as `path function` with its share."""
    lines = []
    for name, share in flame.functions.items():
        function, _, path = name.removesuffix(")").partition(" (")
        lines.append(f"`{path.removeprefix('noetl/')} {function}` {share:.0%}")
    return ", ".join(lines)


def _flames(flames: Mapping[str, Flame]) -> str:
    rows = [
        f"| [{name}](../flames/{name}.svg) | {flame.samples:,} | {shares(flame)} | {functions(flame)} |"
        for name, flame in flames.items()
    ]
    parts = [f"- {name}: {words}" for name, words in PARTS.items()]
    table = ["| picture | samples | shares | hottest functions |", "|---|---|---|---|", *rows]
    return "\n".join([FLAMES, *parts, "", *table]) + "\n"


def page(
    results: Results | None,
    flames: Mapping[str, Flame],
    memory: Memory | None = None,
    screen: Measured | None = None,
    elsewhere: Mapping[str, Results] = MappingProxyType({}),
) -> str:
    """Write the page of a run, with what is kept of others."""
    blocks = [INTRODUCTION]
    if results is None:
        return "\n".join([*blocks, "There are no results yet.\n"])
    blocks += [_about(results), "## Numbers\n", SMALLER, _numbers(results), "## Ratios\n", RATIOS, _ratios(results)]
    problems = [f"- {one.side}, {one.workload}: {one.problem}" for one in results.results if one.problem]
    if problems:
        blocks += ["## What is missing\n", "\n".join(problems) + "\n"]
    blocks += [ELSEWHERE] if elsewhere else []
    for machine, run in elsewhere.items():
        blocks += [f"### {machine}\n", _briefly(run), _numbers(run), _ratios(run)]
    blocks += [section(memory)] if memory is not None else []
    blocks += [table(screen)] if screen is not None else []
    return "\n".join([*blocks, _flames(flames)] if flames else blocks)


def _about(results: Results) -> str:
    lines = [f"## The run of {results.date}\n", *([f"{results.note}\n"] if results.note else [])]
    lines += [f"- {name}: {value}" for name, value in results.machine.items()]
    once = [name for name in results.workloads() if WORKLOADS[name].once]
    single = f"; {', '.join(once)} ran once" if once else ""
    lines += [f"- {name}: {value}" for name, value in probes(results).items()]
    lines += [f"- rounds: {results.rounds}, medians{single}"]
    spreads = results.spreads()
    if spreads:
        middle = spreads[len(spreads) // 2]
        lines.append(
            f"- noise: the rounds of one side differ {number(middle)}-fold (median), {number(spreads[-1])}-fold (maximum)"
        )
    lines += [
        f"- {name}: {versions}; {PEERS[name].about}" for name, versions in results.versions.items() if name in PEERS
    ]
    return "\n".join(lines) + "\n"


def _briefly(results: Results) -> str:
    machine = [results.machine[name] for name in ("processors", "memory", "system") if name in results.machine]
    told = [f"{', '.join([results.date, *machine])}.", results.note, f"Additions: {probes(results)['additions']}."]
    return " ".join(filter(None, told)) + "\n"


ELSEWHERE = """\
## On other machines

The same work on a slower or another processor, with fewer sides. Every table is one run.
"""
SMALLER = """\
A size in brackets means that this side ran a smaller workload, because the full one takes too long; the unit is the same. A
dash is explained below. The rows `ms a flush` show the disk, probed before each round.
"""


def _numbers(results: Results) -> str:
    sides = results.sides()
    lines = [f"| workload | | {' | '.join(sides)} |", f"|---|---|{'---|' * len(sides)}"]
    for name in results.workloads():
        workload = WORKLOADS[name]
        for figure in measured_of(results, workload):
            cells = " | ".join(_cell(results, side, name, figure.name) for side in sides)
            first = f"{name} {workload.title} ({size(results, name):,})" if figure is workload.figures[0] else ""
            lines.append(f"| {first} | {figure.unit} | {cells} |")
        probed = {one.side: number(one.flush_ms) for one in results.results if one.workload == name and one.flush_ms}
        if probed:
            lines.append(f"| | ms a flush | {' | '.join(probed.get(side, '') for side in sides)} |")
    workloads = [WORKLOADS[name] for name in results.workloads()]
    about = [
        f"\n{one.name}: {one.about}" for one in workloads if one.about and measured_of(results, one) == one.figures
    ]
    return "\n".join([*lines, *about]) + "\n"


def measured_of(results: Results, workload: Workload) -> tuple[Figure, ...]:
    """Return the figures of a workload that any side of a run has."""
    known = {name for one in results.results if one.workload == workload.name for name in one.medians}
    return tuple(figure for figure in workload.figures if figure.name in known or figure is workload.figures[0])


def _cell(results: Results, side: str, workload: str, figure: str) -> str:
    one = next((one for one in results.results if (one.side, one.workload) == (side, workload)), None)
    if one is None:
        return ""
    if figure not in one.medians:
        return "" if one.medians else "–"
    smaller = f" ({one.size:,})" if one.size != size(results, workload) else ""
    return number(one.medians[figure]) + smaller


RATIOS = "How many times better NoETL is; below 1, the other system is better.\n"


def _ratios(results: Results) -> str:
    """Format how many times better NoETL is than each other side; below 1 is worse."""
    others = [side for side in results.sides() if side not in OURS]
    lines = [f"| workload | form | {' | '.join(others)} |", f"|---|---|{'---|' * len(others)}"]
    for name in results.workloads():
        for form in OURS:
            mine = results.others(form)
            own = [results.better(form, other, name) if other in mine else None for other in others]
            if any(own):
                lines.append(
                    f"| {name} | {form} | {' | '.join('' if ratio is None else number(ratio) for ratio in own)} |"
                )
    return "\n".join(lines) + "\n"
