"""Measure how long one execution waits beside a playbook with a long queue.

    python bench/neighbour.py [--queued 10000] [--kind http] [--work-ms 20] [--times 30]

Starts `noetl up` on a new SQLite store. Measures from the request to the start of the first step, of a playbook alone, then
while another one has just enough executions queued to keep the worker busy, and while it has many. The step of those takes a
while. What the second adds to the first is the price of a busy machine, what the third adds is that of a long queue. With `http` the queued work waits, as most work
does; with `python` each execution takes a process of its own, so that the processors are the limit. Asserts nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.peers.web import web_server
from noetl.client.sync import SyncClient
from tests.server.serving import process

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{name: {name}, path: bench/{name}}}\n"
STEPS = {
    "http": "workflow:\n  - step: one\n    tool: {{kind: http, url: '{web}/wait/{work_ms}'}}\n",
    "python": "workflow:\n  - step: one\n    tool: {{kind: python, code: 'import time; time.sleep({work_ms} / 1000)'}}\n",
}
_STARTS = 500  # by one request
_FEW = 100  # more than the worker runs at once


def started_after(client: SyncClient) -> float:
    """Start an execution of the quiet playbook; return the ms until its step started."""
    begun = time.perf_counter()
    execution_id = client.execute("bench/quiet", wait_ms=30_000).execution_id
    whole = (time.perf_counter() - begun) * 1000
    events = client.events(execution_id)
    asked = next(event.timestamp for event in events if event.event_type == "playbook.execution.requested")
    return min(whole, next(event.timestamp for event in events if event.event_type == "task.started") - asked)


def queued_now(client: SyncClient) -> int:
    return sum(pool.queued for pool in client.pools())


def beside(client: SyncClient, queued: int) -> float:
    """Measure one start, after a queue that was half empty is filled."""
    missing = queued - queued_now(client)
    for first in range(0, missing if missing > queued // 2 else 0, _STARTS):
        client.execute_many("bench/noisy", [{}] * min(_STARTS, missing - first))
    return started_after(client)


def shown(times: list[float]) -> str:
    times = sorted(times)
    return f"median {statistics.median(times):6.1f}, p90 {times[int(len(times) * 0.9)]:6.1f}, worst {times[-1]:6.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one execution beside a long queue.")
    parser.add_argument("--queued", type=int, default=10_000)
    parser.add_argument("--kind", choices=tuple(STEPS), default="http")
    parser.add_argument("--work-ms", type=int, default=20)
    parser.add_argument("--times", type=int, default=30)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, web_server() as web, process(Path(folder), "up") as (url, _):
        client = SyncClient(url)
        for name in ("noisy", "quiet"):
            step = STEPS[chosen.kind].format(web=web, work_ms=chosen.work_ms)
            client.register(HEAD.format(name=name) + step)
        started_after(client)
        idle = [started_after(client) for _ in range(chosen.times)]
        print(f"alone                      {shown(idle)}")
        for queued in (_FEW, chosen.queued):
            busy = [beside(client, queued) for _ in range(chosen.times)]
            ratio = statistics.median(busy) / statistics.median(idle)
            print(f"beside {queued_now(client):>6,} queued      {shown(busy)}; {ratio:.2f} times")


if __name__ == "__main__":
    main()
