"""Measure a server under attack: templates, documents, bodies, headers, frames.

    python bench/hostile.py [--seed 0] [--only PHASE] [--document-bytes 1000000] [--at-once 4] [--times 1]

Starts `noetl up` on a new SQLite store. A second process asks for `/health` and for an execution all the time, as a
neighbour does. Prints for each phase how long the slowest attack took, how far the server's memory grew, and how long the
neighbour waited. Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.corpus.hostile import ALL, HEAD
from tests.server.http.test_limits import resident_mb
from tests.server.serving import ONE, process
from tests.unit.expr.safety.hostile import DATA, GROWING, makers, repeated

Attack = Callable[[httpx.Client], None]
QUIET = HEAD + "workflow:\n  - step: wait\n    tool: {kind: wait, signal: go}\n"


@dataclass
class Waits:
    """How long a neighbour waited, in milliseconds."""

    health: list[float]
    reads: list[float]

    def shown(self) -> str:
        health, reads = sorted(self.health), sorted(self.reads)
        p99 = health[min(len(health) - 1, int(len(health) * 0.99))]
        return (
            f"/health median {statistics.median(health):6.1f} p99 {p99:6.1f} max {health[-1]:6.1f} ms, "
            f"execution median {statistics.median(reads):6.1f} ms ({len(health)} times)"
        )


def watch(url: str, execution_id: str, begun: Any, ending: Any, found: Any) -> None:
    """Ask like a neighbour until the phase ends."""
    waits = Waits([], [])
    with httpx.Client(base_url=url, timeout=60) as client:
        client.get("/health")
        begun.set()
        while not ending.is_set():
            for path, times in (("/health", waits.health), (f"/api/executions/{execution_id}", waits.reads)):
                asked = time.perf_counter()
                client.get(path).raise_for_status()
                times.append((time.perf_counter() - asked) * 1000)
            time.sleep(0.01)
    found.put(waits)


class Target:
    """A server under attack."""

    def __init__(self, url: str, pid: int, at_once: int) -> None:
        self.at_once = at_once
        self.url, self.pid = url, pid
        with httpx.Client(base_url=url, timeout=60) as client:
            self.quiet = _started(client, QUIET)
            self.data = _started(client, QUIET, small(DATA))
            _started(client, ONE)

    def measure(self, name: str, attacks: Iterable[tuple[str, Attack]]) -> None:
        """Run attacks, some at a time, and print what they cost."""
        context = multiprocessing.get_context("spawn")
        begun, ending, found = context.Event(), context.Event(), context.Queue()
        neighbour = context.Process(target=watch, args=(self.url, self.quiet, begun, ending, found))
        neighbour.start()
        begun.wait(60)
        before, slowest, count = resident_mb(self.pid), (0.0, "none"), 0
        try:
            with httpx.Client(base_url=self.url, timeout=120) as client, ThreadPoolExecutor(self.at_once) as pool:
                for took, label in pool.map(lambda one: _timed(client, *one), attacks):
                    slowest, count = max(slowest, (took, label)), count + 1
        finally:
            ending.set()
        waits = found.get(timeout=60)
        neighbour.join()
        grown = resident_mb(self.pid) - before
        print(f"{name:10} {count:4} attacks, slowest {slowest[0]:5.2f} s ({slowest[1][:40]}), {grown:+4.0f} MB")
        print(f"{'':10} {waits.shown()}", flush=True)


def _timed(client: httpx.Client, label: str, attack: Attack) -> tuple[float, str]:
    begun = time.perf_counter()
    attack(client)
    return time.perf_counter() - begun, label


def _started(client: httpx.Client, content: str, payload: Any = None) -> str:
    answer = client.post("/api/execute", json={"content": content, "payload": payload or {}})
    assert answer.status_code < 300, answer.text[:500]
    return str(answer.json()["execution_id"])


def small(value: Any, depth: int = 0) -> Any:
    """Return hostile data that fits into a request."""
    if isinstance(value, str):
        return value[: 20_000 >> 3 * depth].encode(errors="replace").decode()
    if isinstance(value, list):
        return [small(item, depth + 1) for item in value[:200]]
    if isinstance(value, dict):
        most = 2_000 if depth == 0 else 200
        return {key: small(item, depth + (depth > 0)) for key, item in list(value.items())[:most]}
    return value if not isinstance(value, int) or abs(value) < 1 << 60 else f"{value % 10**18}"


def bombs(seed: int) -> Iterator[tuple[str, str]]:
    chance = random.Random(seed)
    for name, make in makers():
        yield name, repeated(make(chance))
    for number, template in enumerate(GROWING):
        yield f"growing {number}", template


def rendered(target: Target, seed: int) -> Iterator[tuple[str, Attack]]:
    for name, template in bombs(seed):
        body = {"execution_id": target.data, "template": template}
        yield name, partial(_post, "/context/render", json.dumps(body).encode())


def conditions(seed: int, field: str) -> Iterator[tuple[str, Attack]]:
    """Playbooks with a bomb in a condition or in a task's input, run to their end."""
    for name, template in list(bombs(seed))[::5]:
        bomb = json.dumps(template.replace("{{", "{% set z = ").replace("}}", " %}") + "{{ z }}")
        step = {
            "when": f"    tool: {{kind: noop}}\n    next:\n      arcs: [{{step: b, when: {bomb}}}]\n",
            "input": f"    tool: {{kind: python, code: 'result = 1', args: {{x: {bomb}}}}}\n",
        }[field]
        text = f"{HEAD}workflow:\n  - step: a\n{step}  - step: b\n    tool: {{kind: noop}}\n"
        yield f"{field} {name}", partial(_run, text)


def _run(text: str, client: httpx.Client) -> None:
    answer = client.post("/api/execute", json={"content": text, "payload": small(DATA)})
    if answer.status_code != 422:
        execution_id = answer.raise_for_status().json()["execution_id"]
        while client.get(f"/api/executions/{execution_id}").json()["status"] == "running":
            time.sleep(0.2)  # a response has all of the payload


def documents(size: int) -> Iterator[tuple[str, Attack]]:
    for name, make in ALL.items():
        body = {"content": make(size)[:1_000_000]}
        yield name, partial(_post, "/api/catalog", json.dumps(body).encode())


def bodies(target: Target) -> Iterator[tuple[str, Attack]]:
    """Bodies, headers and frames that are broken, deep, large or endless."""
    contents = {
        "deep": b"[" * 1_000_000,
        "deep maps": b'{"a":' * 200_000,
        "many": b'{"path":"x","payload":{"a":[' + b"[]," * 300_000 + b"[]]}}",
        "not UTF-8": b'{"path":"\xff\xfe"}',
        "lone surrogate": b'{"path":"\\ud800"}',
        "large number": b'{"path":"x","payload":{"a":' + b"9" * 900_000 + b"}}",
        "small number": b'{"path":"x","payload":{"a":1e-999999999}}',
        "extreme numbers": b'{"path":"x","payload":{"a":[' + b"1e308," * 300_000 + b"1]}}",
        "doubled keys": b"{" + b'"path":"x",' * 80_000 + b'"path":"y"}',
        "spaces": b" " * 1_000_000,
        "zeros": bytes(1_000_000),
        "text": b'"' + b"x" * 1_000_000,
    }
    paths = ("/api/execute", "/api/catalog", "/context/render", "/api/executions/1/signal", "/api/nothing")
    for name, content in contents.items():
        for path in paths:
            yield f"body {name}", partial(_post, path, content)
    address = urlsplit(target.url)
    lines = {
        "header": b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 1_000_000,
        "headers": b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 100_000,
        "path": b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n",
        "method": b"A" * 100_000,
        "lengths": b"POST /api/execute HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "chunk": b"POST /api/execute HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n",
        "binary": bytes(range(256)) * 100,
        "frame": b"GET /api/worker/session HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        b"\x81\xff" + b"\xff" * 100_000,
    }
    for name, content in lines.items():
        for _ in range(20):
            yield f"line {name}", partial(_sent, (address.hostname, address.port), content)


def _sent(address: Any, content: bytes, _: httpx.Client) -> None:
    with socket.create_connection(address, timeout=60) as opened, suppress(OSError):
        opened.sendall(content)
        opened.shutdown(socket.SHUT_WR)
        while opened.recv(65_536):
            pass


def _post(path: str, content: bytes, client: httpx.Client) -> None:
    answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
    if answer.status_code >= 500:
        print(f"  {answer.status_code} {path} {answer.text[:200]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    parser.add_argument("--document-bytes", type=int, default=1_000_000)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--times", type=int, default=1, help="of each phase: does memory grow on?")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, process(Path(folder), "up") as (url, server):
        target = Target(url, server.pid, asked.at_once)
        phases: dict[str, Callable[[], Iterable[tuple[str, Attack]]]] = {
            "idle": lambda: (("a second", lambda _: time.sleep(1)) for _ in range(20)),
            "rendered": lambda: rendered(target, asked.seed),
            "when": lambda: conditions(asked.seed, "when"),
            "input": lambda: conditions(asked.seed, "input"),
            "documents": lambda: documents(asked.document_bytes),
            "bodies": lambda: bodies(target),
        }
        for name, attacks in phases.items():
            for _ in range(asked.times if asked.only in (None, name) else 0):
                target.measure(name, attacks())


if __name__ == "__main__":
    main()
