"""Measure the engine on SQLite: steps, loops, memory, replay and a whole command.

    python bench/engine.py [--json] [--only NAME] [--scale 1.0]

Uses the same wiring as `noetl run`, with one process per measurement. Durable numbers depend on the disk, so the time of a
flush is measured beside them, in the same folder and the same minute.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.limits import flush_ms
from bench.workloads import chain, loop
from noetl.cli.runtime.runner import fast_loop, tune_gc
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned
from noetl.engine.state.evolve import fold
from noetl.model.ids import snowflake
from noetl.model.messages import Start
from noetl.settings import Settings
from noetl.wiring.embedded import Embedded, embedded

ROOT = Path(__file__).resolve().parent.parent
STEPS, ITEMS, MANY = 1_000, 10_000, 100_000
TARGETS = {
    "steps": "≤ 0.5 ms a step at a flush ≤ 0.1 ms, else ≤ flush + 0.4 ms",
    "loop": "≥ 5,000 items/s",
    "memory": "≤ 100 MB growth",
    "maps": "≤ 100 MB growth",
    "replay": "≥ 50,000 events/s",
    "hello": "≤ 0.5 s wall, of which the engine ≤ 50 ms",
}


def maps(name: str, count: int) -> str:
    """A loop whose items give small maps, which are kept until the loop has ended."""
    return loop(name, count).replace("{kind: noop}", '{kind: noop, result: {n: "{{ iter.i }}", text: small}}')


@lru_cache
def read(text: str) -> tuple[bytes, str]:
    return pinned(normalize(parse(text, "bench.yaml")))


async def run(app: Embedded, text: str, number: int) -> tuple[str, float, Counter[str]]:
    """Run a playbook as a driver does; return its id, seconds and events by type."""
    canonical, playbook = read(text)
    await app.store.register("bench/bench", text.encode(), canonical, playbook, 0)
    execution_id = snowflake(int(time.time() * 1000), os.getpid(), number)
    types: Counter[str] = Counter()
    async with app.run_worker(f"local:{execution_id}"):
        start = time.perf_counter()
        await app.control.submit(execution_id, Start("start", "bench/bench", playbook, pool=f"local:{execution_id}"))
        async for event in app.control.follow(execution_id):
            types[event.event_type] += 1
        took = time.perf_counter() - start
    row = await app.store.execution(execution_id)
    if row is None or row["status"] != "completed":
        raise SystemExit(f"the playbook did not complete: {row}")
    return execution_id, took, types


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def steps(app: Embedded, folder: Path, scale: float) -> dict[str, Any]:
    count = max(2, round(STEPS * scale))
    await run(app, chain("bench", count, result=""), 0)  # from here on the playbook is known
    before, cpu = flush_ms(folder), time.process_time()
    _, took, types = await run(app, chain("bench", count, result=""), 1)
    cpu = time.process_time() - cpu
    return {
        "steps": count,
        "ms_per_step": took * 1000 / count,
        "cpu_ms_per_step": cpu * 1000 / count,  # of all threads: what is left of it on a machine that others use too
        "flush_ms": max(before, flush_ms(folder)),
        "rows_per_step": sum(types.values()) / count,
    }


async def items(app: Embedded, _folder: Path, scale: float) -> dict[str, Any]:
    count = max(2, round(ITEMS * scale))
    await run(app, loop("bench", 2), 0)
    cpu = time.process_time()
    _, took, types = await run(app, loop("bench", count), 1)
    cpu = time.process_time() - cpu
    return {
        "items": count,
        "items_per_s": count / took,
        "cpu_ms_per_item": cpu * 1000 / count,
        "rows_per_item": sum(types.values()) / count,
        "ranges": types["loop.iteration.scheduled"],
    }


async def memory(app: Embedded, _folder: Path, scale: float, made: Callable[[str, int], str] = loop) -> dict[str, Any]:
    count = max(2, round(MANY * scale))
    await run(app, made("bench", 100), 0)
    gc.collect()
    before = rss()
    _, took, _ = await run(app, made("bench", count), 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"items": count, "growth_mb": (peak - before) / 1e6, "before_mb": before / 1e6, "items_per_s": count / took}


async def memory_of_maps(app: Embedded, folder: Path, scale: float) -> dict[str, Any]:
    return await memory(app, folder, scale, maps)


async def replay(app: Embedded, _folder: Path, scale: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in (
        ("steps", chain("bench", max(2, round(STEPS * scale)), result="")),
        ("loop", loop("bench", max(2, round(ITEMS * scale)))),
    ):
        execution_id, _, _ = await run(app, text, len(found))
        start = time.perf_counter()
        events = await app.store.read(execution_id)
        read = time.perf_counter()
        fold(execution_id, events)
        done = time.perf_counter()
        found[f"{name}_events"] = len(events)
        found[f"{name}_events_per_s"] = len(events) / (done - start)
        found[f"{name}_fold_only_per_s"] = len(events) / (done - read)
    return found


async def hello(_app: Embedded, folder: Path, _scale: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "noetl", "run", str(ROOT / "examples" / "hello.yaml"), "--json"]
    # Compiled once, as what is installed is.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    walls, engines, cpu = [], [], 0.0
    for number in range(6):
        store = ["--store", str(folder / f"hello{number}.db")]
        used, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ran = subprocess.run(command + store, capture_output=True, check=True, cwd=folder, env=environment)
        took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if number:  # the first one compiles
            walls.append(took)
            engines.append(json.loads(ran.stdout.splitlines()[-1])["duration_ms"])
            cpu += (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) / 5
    return {"wall_s": statistics.median(walls), "best_s": min(walls), "cpu_s": cpu, "engine_ms": min(engines)}


MEASURES: dict[str, Callable[[Embedded, Path, float], Awaitable[dict[str, Any]]]] = {
    "steps": steps,
    "loop": items,
    "memory": memory,
    "maps": memory_of_maps,
    "replay": replay,
    "hello": hello,
}


async def one(name: str, scale: float) -> dict[str, Any]:
    """Take one measurement in this process."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as temporary:
        folder = Path(temporary)
        async with embedded(Settings(folder / "noetl.db")) as app:
            tune_gc()
            return await MEASURES[name](app, folder, scale)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=MEASURES)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="Factor of the default numbers of steps and items. [default: 1.0]"
    )
    parser.add_argument("--here", action="store_true", help="Measure in this process, for a profiler.")
    given = parser.parse_args()
    found = {}
    for name in [given.only] if given.only else MEASURES:
        if given.here:
            with asyncio.Runner(loop_factory=fast_loop()) as runner:  # as `noetl run` does it
                found[name] = runner.run(one(name, given.scale))
            continue
        own = [sys.executable, __file__, "--only", name, "--here", "--json", "--scale", str(given.scale)]
        ran = subprocess.run(own, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"{name}: {ran.stderr}")
        found |= json.loads(ran.stdout)
    if given.json:
        print(json.dumps(found))
        return
    for name, values in found.items():
        shown = "  ".join(
            f"{key}={value:,.3f}" if isinstance(value, float) else f"{key}={value:,}" for key, value in values.items()
        )
        print(f"{name:8} {shown}\n{'':8} target: {TARGETS[name]}")


if __name__ == "__main__":
    main()
