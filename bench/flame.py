"""Draw flame graphs of workloads as small SVG files, with the share of each part.

    python bench/run.py --flame [--workload W1]... [--form embedded]... [--seconds 5]

`py-spy` samples each process five hundred times a second while it runs one execution after another. It samples the thread
that holds the interpreter's lock: waiting for the disk, the network or another process is not counted. Pictures and shares
are written to docs/flames/. Tested in tests/bench/test_flame.py.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import msgspec

from bench.ours import WARM
from bench.peers.environments import environment
from bench.peers.side import ROOT
from bench.real import REAL
from bench.system import Client, Place, System
from bench.workloads import SHORT, WORKLOADS, chain, loop

FOLDER = ROOT / "docs" / "flames"
SHARES = FOLDER / "shares.json"
PY_SPY = ("py-spy==0.4.1",)
DRAWN = ("W1", "W2", "W3", "R1", "R5", "R7", "R9")
RATE = 500
LEAST = 0.004  # of the width; narrower frames are left out
WIDTH, ROW = 1200, 15
MOST_REAL = 1_000  # items of one execution of real work
MOST = 5  # functions listed per process
COLOURS = {"noetl": "#e8925a", "database driver": "#7fb069", "HTTP and sockets": "#6aa5d8", "other": "#c9c2b8"}
LIBRARIES = {
    "asyncpg": "database driver", "psycopg": "database driver", "uvicorn": "HTTP and sockets",
    "websockets": "HTTP and sockets", "starlette": "HTTP and sockets", "httptools": "HTTP and sockets",
    "jinja2": "templates", "asyncio": "event loop", "uvloop": "event loop",
    "threading": "threads", "concurrent": "threads",
}  # fmt: skip
STARTS = (
    "run (asyncio/runners.py)",
    "run (threading.py)",
)  # of what is worth drawing: before them all stacks are the same
Stack = tuple[str, ...]


class Flame(msgspec.Struct, frozen=True):
    """Data of one picture: number of samples, share of each part, hottest functions."""

    samples: int
    shares: dict[str, float]
    functions: dict[str, float] = {}


@dataclass
class Frame:
    """A function in a flame graph: how often it was seen, and what it called."""

    count: int = 0
    called: dict[str, Frame] = field(default_factory=dict)


def stacks(text: str) -> Counter[Stack]:
    """Parse `py-spy record --format raw`: stacks, outermost frame first, with counts."""
    found: Counter[Stack] = Counter()
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        stack = tuple(re.sub(r":\d+\)$", ")", frame) for frame in frames.split(";"))
        begin = next((at for at, frame in enumerate(stack) if frame in STARTS), -1)
        found[stack[begin + 1 :] or stack] += int(count)
    return found


def part(frame: str) -> str:
    """Name the part of a frame: a package of NoETL, or the purpose of a library."""
    path = re.search(r"\(([^)]*)\)$", frame)
    names = path[1].removesuffix(".py").split("/") if path else [""]
    if "noetl" in names:
        inside = names[names.index("noetl") + 1 :]
        return f"noetl.{inside[0]}" if inside else "noetl"
    return next((LIBRARIES[name] for name in names if name in LIBRARIES), "other")


def shares(seen: Counter[Stack]) -> dict[str, float]:
    """Return the share of each part.

    A stack belongs to the part of its innermost frame that has one.
    """
    total, found = seen.total(), Counter[str]()
    for stack, count in seen.items():
        found[next((name for name in map(part, reversed(stack)) if name != "other"), "event loop")] += count
    return {name: round(count / total, 3) for name, count in found.most_common() if count / total >= 0.005}


def functions(seen: Counter[Stack]) -> dict[str, float]:
    """Return the hottest functions of NoETL, including the library calls they make."""
    total, found = seen.total(), Counter[str]()
    for stack, count in seen.items():
        own = next((frame for frame in reversed(stack) if part(frame).startswith("noetl")), None)
        found.update({own: count} if own else {})
    return {name: round(count / total, 3) for name, count in found.most_common(MOST)}


def tree(seen: Counter[Stack]) -> Frame:
    root = Frame()
    for stack, count in seen.items():
        root.count += count
        at = root
        for name in stack:
            at = at.called.setdefault(name, Frame())
            at.count += count
    return root


def picture(seen: Counter[Stack], title: str) -> str:
    """Draw a flame graph."""
    root = tree(seen)
    boxes = list(_boxes(root, root.count, 0.0, 0))
    height = (max((depth for _, depth, _, _ in boxes), default=0) + 3) * ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="10">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/><text x="4" y="11">{escape(title)}, {root.count} samples</text>',
    ]
    for left, depth, width, name in boxes:
        colour = COLOURS.get(part(name).split(".")[0], COLOURS["other"])
        share, shown = width / WIDTH, re.sub(r" \(.*\)$", "", name)
        room = int(width / 6.1)
        label = shown if len(shown) <= room else shown[: room - 1] + "…" if room > 3 else ""
        place = f'x="{left:.1f}" y="{(depth + 1) * ROW}"'
        lines.append(
            f'<g><title>{escape(name)}: {share:.1%}</title><rect {place} width="{width:.1f}" height="{ROW - 1}" fill="{colour}"/>'
        )
        written = f'<text x="{left + 2:.1f}" y="{(depth + 1) * ROW + 10}">{escape(label)}</text>' if label else ""
        lines.append(f"{written}</g>")
    return "\n".join([*lines, "</svg>\n"])


def _boxes(frame: Frame, total: int, left: float, depth: int) -> Iterator[tuple[float, int, float, str]]:
    for name, called in sorted(frame.called.items()):
        width = called.count / total * WIDTH
        if width >= LEAST * WIDTH:
            yield left, depth, width, name
            yield from _boxes(called, total, left, depth + 1)
        left += width


def record(names: Sequence[str], place: Place, seconds: int) -> Iterator[tuple[str, Counter[Stack]]]:
    """Sample a system's processes under each workload: `w1-cluster-server` to stacks."""
    program = environment("py-spy", PY_SPY).parent / "py-spy"
    with place.system() as running:
        client = Client(running.url)
        for name in names:
            job = _job(name, client, running, place)
            warm = time.monotonic() + WARM
            while time.monotonic() < warm:
                job()
            watching = {}
            for process, [pid] in ((name, pids) for name, pids in running.processes.items() if name != "postgres"):
                file = Path(place.folder) / f"{name}-{process}.txt"
                command = [str(program), "record", "--gil", "--format", "raw", "--function", "--rate", str(RATE)]
                command += ["--duration", str(seconds), "--output", str(file), "--pid", str(pid)]
                watching[file] = process, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            last = time.monotonic() + seconds + 1
            while time.monotonic() < last:
                job()
            for file, (process, watcher) in watching.items():
                _, said = watcher.communicate(timeout=60)
                assert file.exists(), said.decode()
                yield f"{name.lower()}-{place.form}-{process}", stacks(file.read_text())


def _job(name: str, client: Client, running: System, place: Place) -> Callable[[], object]:
    size = WORKLOADS[name].size("full")
    if name in REAL:
        return lambda: REAL[name](min(size, MOST_REAL), client, running, place)
    if name == "W3":
        path = client.register(chain("short", SHORT))
        return lambda: client.run_many(path, size)
    path = client.register(chain("steps", size) if name == "W1" else loop("loop", size))
    return lambda: client.run(path)


def kept() -> dict[str, Flame]:
    """Return the data of the pictures by name."""
    return msgspec.json.decode(SHARES.read_bytes(), type=dict[str, Flame]) if SHARES.exists() else {}


def draw(names: Sequence[str], places: Sequence[Place], seconds: int) -> dict[str, Flame]:
    """Draw the pictures and keep the shares; gives these."""
    FOLDER.mkdir(exist_ok=True)
    found = kept()
    for place in places:
        for name, seen in record([name for name in names if name in DRAWN], place, seconds):
            (FOLDER / f"{name}.svg").write_text(picture(seen, name), encoding="utf-8")
            found[name] = Flame(seen.total(), shares(seen), functions(seen))
    found = dict(sorted(found.items()))
    SHARES.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return found
