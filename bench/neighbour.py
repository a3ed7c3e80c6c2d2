"""Measure how long one execution waits beside a playbook with a long queue.

    python bench/neighbour.py [--form embedded] [--queued 10000] [--kind http] [--work-ms 100] [--times 100]

Starts `noetl up` on a new SQLite store, or a server and a worker on PostgreSQL (`--form cluster`). Measures an execution of
a playbook alone, then while another one has just enough executions queued to keep the worker busy, and while it has many:
how long its step starts after the client sent the request, and after the log has it, and how long until the client has its
end. What the second adds to the first is the price of a busy machine, what the third adds is that of a long queue. With
`http` the queued work waits for a server, as most work does; with `--work-ms 20` the tasks of one worker fill the processor
of `noetl up`, for which everything waits, and with `python` each execution takes a process of its own, so that the
processors are the limit. Asserts nothing about time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.ours import FORMS
from bench.peers.web import web_server
from bench.system import Place
from noetl.client.sync import SyncClient
from tests.services import postgres_server

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{name: {name}, path: bench/{name}}}\n"
STEPS = {
    "http": "workflow:\n  - step: one\n    tool: {{kind: http, url: '{web}/wait/{work_ms}'}}\n",
    "python": "workflow:\n  - step: one\n    tool: {{kind: python, code: 'import time; time.sleep({work_ms} / 1000)'}}\n",
}
_STARTS = 500  # by one request
_FEW = 1_000  # the worker runs 32 at once
_IN_A_ROW = 10  # starts without a look at the queue
_SETTLED_S = 0.05
_WHAT = ("sent to start", "in the log to start", "sent to end")


@contextmanager
def running(form: str) -> Iterator[str]:
    """Run the processes of a form; yield the server's address."""
    with tempfile.TemporaryDirectory() as folder, postgres_server(fsync="on") as server:
        server.create("neighbour")
        with Place(form, folder, server.address("neighbour"), server.process_id).system() as found:
            yield found.url


def started_after(client: SyncClient) -> tuple[float, float, float]:
    """Start the quiet playbook; return the ms of `_WHAT`."""
    sent, begun = time.time() * 1000, time.perf_counter()
    execution_id = client.execute("bench/quiet", wait_ms=30_000).execution_id
    whole = (time.perf_counter() - begun) * 1000
    events = client.events(execution_id)
    asked = next(event.timestamp for event in events if event.event_type == "playbook.execution.requested")
    started = next(event.timestamp for event in events if event.event_type == "task.started")
    return started - sent, started - asked, whole


def queued_now(client: SyncClient) -> int:
    return sum(pool.queued for pool in client.pools())


def beside(client: SyncClient, queued: int, times: int) -> list[tuple[float, float, float]]:
    """Measure starts beside a queue that is filled up between them."""
    found = []
    for _ in range(0, times, _IN_A_ROW):
        missing = queued - queued_now(client)
        for first in range(0, missing, _STARTS):
            client.execute_many("bench/noisy", [{}] * min(_STARTS, missing - first))
        time.sleep(_SETTLED_S)
        found += [started_after(client) for _ in range(_IN_A_ROW)]
        assert queued_now(client), "the queue was empty before its end: queue more"
    return found


def shown(times: Sequence[float]) -> str:
    times = sorted(times)
    return f"mean {statistics.mean(times):6.2f}, p90 {times[int(len(times) * 0.9)]:6.1f}, worst {times[-1]:6.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one execution beside a long queue.")
    parser.add_argument("--form", choices=FORMS, default="embedded")
    parser.add_argument("--queued", type=int, default=10_000)
    parser.add_argument("--kind", choices=tuple(STEPS), default="http")
    parser.add_argument("--work-ms", type=int, default=100)
    parser.add_argument("--times", type=int, default=100)
    chosen = parser.parse_args()
    with web_server() as web, running(chosen.form) as url:
        client = SyncClient(url)
        for name in ("noisy", "quiet"):
            step = STEPS[chosen.kind].format(web=web, work_ms=chosen.work_ms)
            client.register(HEAD.format(name=name) + step)
        started_after(client)
        idle = list(zip(*(started_after(client) for _ in range(chosen.times)), strict=True))
        for what, alone in zip(_WHAT, idle, strict=True):
            print(f"alone, {what:30}{shown(alone)}")
        for queued in (_FEW, chosen.queued):
            busy = zip(*beside(client, queued, chosen.times), strict=True)
            for what, alone, found in zip(_WHAT, idle, busy, strict=True):
                ratio = statistics.mean(found) / statistics.mean(alone)
                print(f"{queued:6,} queued, {what:22}{shown(found)}; {ratio:.2f} times")


if __name__ == "__main__":
    main()
