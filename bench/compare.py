"""Compare two checkouts of NoETL in turns, on steps of real kinds.

    python bench/compare.py BEFORE AFTER [--form up|cluster] [--only KIND]... [--steps 100] [--rounds 7] [--json]
                            [--unset NAME=VALUE]... [--set NAME=VALUE]...

BEFORE and AFTER are interpreters of virtual environments that each have one checkout installed. Both run at the same
time and take turns round by round, so that a slow phase of the machine hits both. Prints the median wall time and
processor time of a step, and AFTER / BEFORE. Kinds: `noop`; `routed`, a no-op with a template and a condition; `http`
against a local server; `python`; `postgres`. The cluster form and `postgres` start a PostgreSQL server. `--set` gives an environment
variable to AFTER alone and `--unset` to BEFORE alone: with the same interpreter twice, that measures a setting. Asserts
nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.system import Client, System, system, timed
from bench.workloads import HEAD
from tests.services import postgres_server

TASKS = {
    "noop": "{kind: noop}",
    "routed": '{kind: noop, result: {n: "{{ workload.n + 1 }}"}}',
    "http": '{kind: http, method: GET, url: "{{ workload.url }}"}',
    "python": '{kind: python, args: {n: "{{ workload.n }}"}, code: "result = dict(n=n + 1)"}',
    "postgres": '{kind: postgres, auth: bench, query: "SELECT {{ workload.n }} AS n"}',
}
SIDES = ("before", "after")


class _Answer(BaseHTTPRequestHandler):
    """Answer every GET with a small JSON body."""

    protocol_version = "HTTP/1.1"
    wbufsize = 2**16  # head and body in one packet

    def do_GET(self) -> None:
        body = b'{"ok": true, "items": [1, 2, 3]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def playbook(kind: str, steps: int, workload: dict[str, Any]) -> str:
    """Return a chain of steps of one kind."""
    lines = [HEAD.replace("NAME", f"compare_{kind}"), f"workload: {json.dumps(workload)}\nworkflow:"]
    for number in range(steps):
        lines.append(f"  - step: s{number}\n    tool: {TASKS[kind]}")
        if number < steps - 1:
            when = f', when: "{{{{ s{number}.n > 0 }}}}"' if kind == "routed" else ""
            lines.append(f"    next: [{{step: s{number + 1}{when}}}]")
    return "\n".join(lines) + "\n"


def measure(running: dict[str, System], kind: str, content: str, steps: int, rounds: int) -> dict[str, float]:
    """Return the medians of both sides for one kind, measured in turns."""
    clients = {side: Client(one.url) for side, one in running.items()}
    paths = {side: client.register(content) for side, client in clients.items()}
    wall: dict[str, list[float]] = {side: [] for side in SIDES}
    cpu: dict[str, list[float]] = {side: [] for side in SIDES}
    for turn in range(rounds + 1):
        for side in SIDES if turn % 2 else reversed(SIDES):
            before = sum(running[side].cpu_ms().values())
            [ms] = timed(lambda side=side: clients[side].run_told(paths[side]), 1)  # type: ignore[misc]
            if turn:  # the first round only warms up
                wall[side].append(ms / steps)
                cpu[side].append((sum(running[side].cpu_ms().values()) - before) / steps)
    medians = {f"{kind}_{side}_ms": statistics.median(wall[side]) for side in SIDES}
    medians |= {f"{kind}_{side}_cpu_ms": statistics.median(cpu[side]) for side in SIDES}
    medians[f"{kind}_ratio"] = medians[f"{kind}_after_ms"] / medians[f"{kind}_before_ms"]
    medians[f"{kind}_cpu_ratio"] = medians[f"{kind}_after_cpu_ms"] / max(medians[f"{kind}_before_cpu_ms"], 1e-9)
    return medians


@contextmanager
def environment(settings: Sequence[str]) -> Iterator[None]:
    """Set environment variables while a side starts."""
    before = dict(os.environ)
    os.environ.update({name: value for name, _, value in (one.partition("=") for one in settings)})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def compare(options: argparse.Namespace) -> dict[str, float]:
    """Start both sides and measure every kind."""
    found: dict[str, float] = {}
    with ExitStack() as stack:
        answers = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
        threading.Thread(target=answers.serve_forever, daemon=True).start()
        stack.callback(answers.shutdown)
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        server = stack.enter_context(postgres_server())
        server.create("work")
        workload = {"n": 1, "url": f"http://127.0.0.1:{answers.server_port}/"}
        os.environ["NOETL_CREDENTIAL_BENCH"] = server.address("work")  # read by the workers
        running = {}
        own_settings = (options.unset, options.set)
        for side, python, settings in zip(SIDES, (options.before, options.after), own_settings, strict=True):
            own = Path(folder) / side
            own.mkdir()
            server.create(side)
            database = server.address(side) if options.form == "cluster" else None
            with environment(settings):
                running[side] = stack.enter_context(system(options.form, str(own), database, python=python))
        for kind in options.only or TASKS:
            found |= measure(running, kind, playbook(kind, options.steps, workload), options.steps, options.rounds)
            if not options.json:
                ratio, cpu = found[f"{kind}_ratio"], found[f"{kind}_cpu_ratio"]
                print(
                    f"{kind:9} {found[f'{kind}_before_ms']:7.3f} → {found[f'{kind}_after_ms']:7.3f} ms a step (× {ratio:.2f}); "
                    f"processor {found[f'{kind}_before_cpu_ms']:.3f} → {found[f'{kind}_after_cpu_ms']:.3f} (× {cpu:.2f})",
                    flush=True,
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="interpreter with the older checkout installed")
    parser.add_argument("after", help="interpreter with the newer checkout installed")
    parser.add_argument("--form", choices=("up", "cluster"), default="up")
    parser.add_argument("--only", action="append", choices=tuple(TASKS))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--unset", action="append", default=[], metavar="NAME=VALUE", help="setting of BEFORE alone")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="setting of AFTER alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = compare(options)
    if options.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
