"""The workloads of the benchmark: what each runs, its sizes and its figures.

A side returns raw observations (seconds, times, marks); `figures` computes the numbers of the table from them, the same way
for every side. Tested in tests/bench/test_figures.py.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.peers.side import AT_ONCE, CHILD, SOLD

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: NAME, path: bench/NAME}\n"
SHORT = 5  # steps of an execution of W3
WIDE = 10_240  # characters that a step of W9 adds
SCALES = ("small", "medium", "full")


@dataclass(frozen=True)
class Figure:
    """A number of the table. Ratios use the first figure of a workload."""

    name: str
    unit: str
    less_is_better: bool = True
    of_all: bool = False  # it grows with the size, so ratios are of its share per item


@dataclass(frozen=True)
class Workload:
    """What is run, and how much of it at each scale."""

    name: str
    title: str
    sizes: tuple[int, int, int]
    figures: tuple[Figure, ...]
    peers: bool | tuple[str, ...] = False  # others have something like it, or these do
    once: bool = False  # it is long, and looks at many things: one round is enough
    about: str = ""  # how it is done, where that is not the same on every side

    def size(self, scale: str) -> int:
        return self.sizes[SCALES.index(scale)]

    def has(self, peer: str) -> bool:
        """Return whether a peer takes part."""
        return self.peers if isinstance(self.peers, bool) else peer in self.peers


DURABLE = ("dbos-sqlite", "dbos-postgresql")  # who has the signals, children and timers of R7 to R9
REAL = ("bare", *DURABLE, "restate", "prefect", "celery")  # who does the work of R1 to R5
LATENCY = Figure("p50_ms", "ms p50"), Figure("p95_ms", "ms p95")
WORKLOADS = {
    found.name: found
    for found in (
        Workload("W1", "steps in a row", (20, 200, 200), (Figure("ms_per_step", "ms a step"),), True),
        Workload(
            "W2", "fan-out and fan-in", (100, 1_000, 1_000), (Figure("items_per_s", "items/s", False),), True
        ),
        Workload(
            "W3", f"executions of {SHORT} steps, submitted at once", (20, 200, 200),
            (Figure("steps_per_s", "steps/s", False), Figure("apart_steps_per_s", "steps/s, a request each", False)), True,
            about="NoETL gets all executions in one request, whose response comes after the last one ended. In the second row, "
            "which only NoETL has, each execution has its own request, over 16 connections, and the event feed reports the "
            "ends. procrastinate and pgqueuer get all jobs in one call; the others start each execution with its own call, "
            "without waiting for the previous one, and then wait for all results.",
        ),
        Workload("W4", "submit to finish of one step on an idle system", (5, 50, 50), LATENCY, True),
        Workload("W5", "cold start to the first finished hello", (1, 1, 1), (Figure("seconds", "s"),), True),
        Workload(
            "W6", "`kill -9` in the middle of steps in a row", (20, 100, 200),
            (Figure("first_step_s", "s to the first step"), Figure("missing", "missing"), Figure("doubled", "doubled")), True,
        ),
        Workload("W7", "tasks inside one step", (100, 1_000, 1_000), (Figure("ms_per_task", "ms a task"),)),
        Workload(
            "W8", "memory over a long loop", (2_000, 100_000, 100_000),
            (Figure("growth_mb", "MB at most"), Figure("items_per_s", "items/s", False)), once=True,
        ),
        Workload(
            "W9", "steps that each add 10 KB to the results: a late step against an early one", (60, 500, 500),
            (Figure("late_to_early", "×"), Figure("ms_per_step", "ms a step")),
        ),
        Workload(
            "W10", "seconds of sustained mixed load", (1, 30, 300),
            (
                Figure("executions_per_s", "executions/s", False), Figure("p99_ms", "ms p99"),
                Figure("cpu_ms_per_step", "ms CPU a step"), Figure("rows_per_step", "rows of the log a step"),
                Figure("events_per_step", "events a step"),
            ), once=True,
        ),
        Workload(
            "W11", "replay of a log of this many events and more", (2_000, 200_000, 1_000_000),
            (Figure("events_per_s", "events/s", False),), once=True,
        ),
        Workload(
            "R1", "`python` steps in a row, each fed by the one before and routed by a condition", (5, 100, 100),
            (Figure("ms_per_step", "ms a step"), Figure("cpu_ms_per_step", "ms CPU a step")), REAL,
        ),
        Workload(
            "R2", "loop of items, each a GET and a `python` task", (10, 500, 500),
            (Figure("items_per_s", "items/s", False), Figure("cpu_ms_per_item", "ms CPU an item")), REAL,
        ),
        Workload(
            "R3", "executions of GET, `python` and INSERT, submitted at once", (5, 100, 100),
            (Figure("ms_each", "ms each"), Figure("cpu_ms_each", "ms CPU each")), REAL,
        ),
        Workload("R4", "submit to finish of one `python` step on an idle system", (3, 50, 50), LATENCY, REAL),
        Workload(
            "R5", "loop of rows, each a small `python` transformation", (50, 10_000, 10_000),
            (Figure("rows_per_s", "rows/s", False), Figure("cpu_ms_per_row", "ms CPU a row")), REAL,
        ),
        Workload(
            "R6", "MB of CSV over `duckdb` into PostgreSQL by `transfer`", (1, 100, 100),
            (Figure("seconds", "s"), Figure("cpu_s", "s CPU")), ("bare",), once=True,
            about="The plain script reads the file with DuckDB and writes the rows with COPY. No side's processor time "
            "includes PostgreSQL.",
        ),
        Workload(
            "R7", "executions that `wait` for a signal, sent to each by a request", (10, 1_000, 1_000),
            (Figure("signals_per_s", "signals/s", False), Figure("cpu_ms_per_signal", "ms CPU a signal")), DURABLE,
            about="From the first signal to the end of the last execution. NoETL gets them over 16 connections; DBOS gets "
            "them by a call inside the process.",
        ),
        Workload(
            "R8", f"child playbooks of {CHILD} steps below one parent", (5, 200, 200),
            (Figure("children_per_s", "children/s", False), Figure("cpu_ms_per_child", "ms CPU a child")), DURABLE,
        ),
        Workload(
            "R9", "durable `sleep`s, each in an execution of its own, due at one moment", (50, 10_000, 10_000),
            (Figure("last_s", "s from due to the last end", of_all=True), Figure("cpu_ms_each", "ms CPU each")), DURABLE, once=True,
            about="All timers are in the store before the moment. DBOS sleeps in tasks of its process.",
        ),
    )
}  # fmt: skip


def quantile(times: Sequence[float], share: float) -> float:
    """Return the time that this share of them does not exceed."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def figures(workload: str, size: int, seen: Mapping[str, Any]) -> dict[str, float]:
    """Make the numbers of a workload from what a side has seen of it."""
    made = _MADE.get(workload)
    return dict(seen) if made is None else made(size, seen)


def _latency(_size: int, seen: Mapping[str, Any]) -> dict[str, float]:
    times = [1000 * one for one in seen["times"]]
    return {"p50_ms": statistics.median(times), "p95_ms": quantile(times, 0.95)}


def _at_once(size: int, seen: Mapping[str, Any]) -> dict[str, float]:
    made = {"steps_per_s": SHORT * size / seen["seconds"]}
    if "apart_seconds" in seen:
        made["apart_steps_per_s"] = SHORT * size / seen["apart_seconds"]
    return made


def _cost(time: str, unit: str, *, is_rate: bool = False) -> Callable[[int, Mapping[str, Any]], dict[str, float]]:
    """Return what makes time and processor time of one of many."""

    def made(size: int, seen: Mapping[str, Any]) -> dict[str, float]:
        each = seen["seconds"] / size
        return {time: 1 / each if is_rate else 1000 * each, f"cpu_ms_{unit}": seen["cpu_ms"] / size}

    return made


_MADE: dict[str, Callable[[int, Mapping[str, Any]], dict[str, float]]] = {
    "W1": lambda size, seen: {"ms_per_step": 1000 * seen["seconds"] / size},
    "W2": lambda size, seen: {"items_per_s": size / seen["seconds"]},
    "W3": _at_once,
    "W4": _latency,
    "W7": lambda size, seen: {"ms_per_task": 1000 * seen["seconds"] / size},
    "R1": _cost("ms_per_step", "per_step"),
    "R2": _cost("items_per_s", "per_item", is_rate=True),
    "R3": _cost("ms_each", "each"),
    "R4": _latency,
    "R5": _cost("rows_per_s", "per_row", is_rate=True),
    "R6": lambda _size, seen: {"seconds": seen["seconds"], "cpu_s": seen["cpu_ms"] / 1000},
    "R7": _cost("signals_per_s", "per_signal", is_rate=True),
    "R8": _cost("children_per_s", "per_child", is_rate=True),
    "R9": lambda size, seen: {"last_s": seen["seconds"], "cpu_ms_each": seen["cpu_ms"] / size},
}


def chain(name: str, steps: int, *, result: str = "{n}", head: str = "") -> str:
    """Return a playbook of steps in a row; `{n}` in the result is the step's number."""
    lines = [HEAD.replace("NAME", name), head, "workflow:\n"]
    given = f", result: {result}" if result else ""
    for number in range(steps):
        lines.append(f"  - step: s{number}\n    tool: {{kind: noop{given.replace('{n}', str(number))}}}\n")
        lines.append(f"    next: s{number + 1}\n" if number + 1 < steps else "")
    return "".join(lines)


def growing(name: str, steps: int) -> str:
    """Write a playbook whose every step gives a long text."""
    head = f'workload: {{text: "{"x" * WIDE}"}}\n'
    return chain(name, steps, result='"{{ workload.text }}"', head=head)


def loop(name: str, items: int) -> str:
    """Write a loop over numbers."""
    over = f'loop: {{in: "{{{{ range({items}) }}}}", iterator: i, spec: {{mode: parallel}}}}'
    return HEAD.replace("NAME", name) + f"workflow:\n  - step: s\n    {over}\n    tool: {{kind: noop}}\n"


def pipeline(name: str, tasks: int) -> str:
    lines = "".join(f"      - t{number}: {{kind: noop, result: {number}}}\n" for number in range(tasks))
    return HEAD.replace("NAME", name) + f"workflow:\n  - step: s\n    tool:\n{lines}"


def marked(name: str, steps: int, path: str) -> str:
    """Return a playbook whose steps take 20 ms and append a mark to a file."""
    lines = [HEAD.replace("NAME", name), "workflow:\n"]
    code = f"import os, time; open({path!r}, 'a').write(f'{{n}} {{os.getpid()}} {{time.time()}}\\n'); time.sleep(0.02)"
    for number in range(steps):
        lines.append(f"  - step: s{number}\n    tool:\n      kind: python\n      args: {{n: {number}}}\n")
        lines.append(f"      code: |\n        {code}\n")
        lines.append(f"    next: s{number + 1}\n" if number + 1 < steps else "")
    return "".join(lines)


def adding(name: str, steps: int) -> str:
    """Return a playbook of `python` steps, each fed by the one before and routed."""
    lines = [HEAD.replace("NAME", name), "workflow:\n"]
    for number in range(steps):
        before = f"{{{{ s{number - 1}.n }}}}" if number else "0"
        lines.append(f"  - step: s{number}\n    tool:\n      kind: python\n      args: {{n: '{before}'}}\n")
        lines.append("      code: 'result = {\"n\": int(n) + 1}'\n")
        if number + 1 < steps:
            lines.append(f'    next: {{arcs: [{{step: s{number + 1}, when: "{{{{ s{number}.n > 0 }}}}"}}]}}\n')
    return "".join(lines)


_TOTAL = "result = {'total': item['price'] * item['count']}"


def fetching(name: str, items: int, url: str) -> str:
    """Return a loop whose items are a GET and a `python` task."""
    return f"""{HEAD.replace("NAME", name)}workflow:
  - step: s
    loop: {{in: "{{{{ range({items}) }}}}", iterator: i, spec: {{mode: parallel, max_in_flight: {AT_ONCE}}}}}
    tool:
      - get: {{kind: http, url: "{url}/item/{{{{ iter.i }}}}"}}
      - total: {{kind: python, args: {{item: "{{{{ get.data }}}}"}}, code: "{_TOTAL}"}}
"""


def saving(name: str, url: str, database: str) -> str:
    """Return a playbook of a GET, a `python` step and an INSERT."""
    return f"""{HEAD.replace("NAME", name)}workflow:
  - step: get
    tool: {{kind: http, url: "{url}/item/7"}}
    next: total
  - step: total
    tool: {{kind: python, args: {{item: "{{{{ get.data }}}}"}}, code: "{_TOTAL}"}}
    next: save
  - step: save
    tool:
      kind: postgres
      auth: {{dsn: "{database}"}}
      command: INSERT INTO totals (amount) VALUES ({{{{ total.total }}}})
"""


def transforming(name: str, rows: int) -> str:
    """Return a loop whose items are a small `python` transformation."""
    return f"""{HEAD.replace("NAME", name)}workflow:
  - step: s
    loop: {{in: "{{{{ range({rows}) }}}}", iterator: i, spec: {{mode: parallel}}}}
    tool: {{kind: python, args: {{n: "{{{{ iter.i }}}}"}}, code: "result = n + 1"}}
"""


def loading(name: str, path: str, database: str) -> str:
    """Return a playbook that loads a CSV file into PostgreSQL."""
    return f"""{HEAD.replace("NAME", name)}workflow:
  - step: load
    tool:
      kind: transfer
      auth: {{dsn: "{database}"}}
      source: {{kind: duckdb, database: ":memory:", query: "{SOLD.format(path=path)}"}}
      target: {{kind: postgres, table: sales}}
"""


def waiting(name: str) -> str:
    """Return a playbook that waits for a signal."""
    return f"{HEAD.replace('NAME', name)}workflow:\n  - step: s\n    tool: {{kind: wait, signal: go}}\n"


def calling(name: str, child: str, count: int) -> str:
    """Return a loop whose items are child playbooks."""
    return f"""{HEAD.replace("NAME", name)}workflow:
  - step: s
    loop: {{in: "{{{{ range({count}) }}}}", iterator: i, spec: {{mode: parallel}}}}
    tool: {{kind: playbook, path: {child}}}
"""


def sleeping(name: str) -> str:
    """Return a playbook that sleeps until a moment of its workload."""
    head = f"{HEAD.replace('NAME', name)}workload: {{until: 0}}\n"
    return head + 'workflow:\n  - step: s\n    tool: {kind: sleep, until: "{{ workload.until }}"}\n'
