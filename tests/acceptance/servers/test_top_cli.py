"""`noetl top`: one frame for scripts, and the live view in a real terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from noetl.cli.output.top_readings import Counted, count, rates, slowest_steps
from tests.acceptance.running import Folder, until
from tests.server.serving import ONE, PATIENCE_S, WAITS, playbook, process

FAILS = playbook(
    "  - step: bad\n    tool: {kind: python, code: \"raise ValueError('red \\\\x1b[31m alert')\"}\n", "hostile"
)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def start(url: str, content: str, wait_ms: int = 20_000) -> str:
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        path = client.post("/api/catalog", json={"content": content}).json()["path"]
        return str(client.post("/api/execute", json={"path": path, "wait_ms": wait_ms}).json()["execution_id"])


def test_one_frame_shows_what_there_is(folder: Folder) -> None:
    with process(folder.path, "up") as (url, _up):
        start(url, ONE)
        failed = start(url, FAILS)
        start(url, WAITS, wait_ms=500)
        ran = folder.call("top", "--once", "--server", url, COLUMNS="120")
        assert ran.code == 0, ran.err
        lines = [line.split() for line in ran.out.splitlines()]
        assert ["executions", "running", "0", "waiting", "1", "pending", "0", "paused", "0"] in lines
        assert dict(zip(lines[2][2::2], lines[2][3::2], strict=True)) == {
            "completed": "1",
            "failed": "1",
            "waiting": "1",
        }
        assert any(line[:3] == ["test/one", "one", "1"] for line in lines)
        assert any(line[:2] == ["test/hostile", "bad"] for line in lines)
        assert any(failed in line and "ValueError:" in line for line in lines)
        assert "\x1b" not in ran.out
        assert "\\x1b[31m" in ran.out
        found = json.loads(folder.call("top", "--json", "--server", url).out)
        assert (found["open"]["waiting"], found["totals"]["ended"], found["totals"]["failed"]) == (1, 2, 1)
        assert [one["execution_id"] for one in found["failures"]] == [failed]
        assert {one["step"] for one in found["slowest_steps"]} == {"one", "bad"}
        assert [one["capacity"] for one in found["workers"]] == [32]
    ran = folder.call("top", "--once", "--server", url)
    assert (ran.code, "cannot be reached" in ran.err) == (1, True)


@contextmanager
def terminal(folder: Path, *arguments: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run a command in a terminal of 100 columns and 40 lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "noetl", *arguments]
    running = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        yield ours, running
    finally:
        running.kill()
        running.wait()
        os.close(ours)


def test_the_live_view_follows_and_ends_with_q(tmp_path: Path) -> None:
    seen = bytearray()
    with process(tmp_path, "up") as (url, _up), terminal(tmp_path, "top", "--server", url, "--interval", "0.2") as top:
        screen, running = top

        def shows(words: str) -> None:
            while words.encode() not in seen:
                assert select.select([screen], [], [], PATIENCE_S)[0], seen.decode(errors="replace")
                seen.extend(os.read(screen, 65_536))

        shows("Newest failures")
        failed = start(url, FAILS)
        shows(failed)
        os.write(screen, b"q")
        until(lambda: running.poll() is not None, "the end of noetl top")
        assert running.returncode == 0
        assert b"\x1b[?1049h" in seen  # the alternate screen, which leaves the shell's lines in place


PAGE = """# TYPE noetl_step_runs_total counter
noetl_step_runs_total{workflow="w",step="a",ok="true"} %d
noetl_step_runs_total{workflow="w",step="b",ok="false"} %d
# TYPE noetl_executions_completed_total counter
noetl_executions_completed_total{workflow="w",status="ok"} %d
# TYPE noetl_step_duration_seconds histogram
noetl_step_duration_seconds_bucket{workflow="w",step="a",le="+Inf"} %d
noetl_step_duration_seconds_count{workflow="w",step="a"} %d
noetl_step_duration_seconds_sum{workflow="w",step="a"} %f
"""


def counted(at: int, good: int, bad: int, ended: int, seconds: float) -> Counted:
    return count(PAGE % (good, bad, ended, good, good, seconds), at)


def test_rates_are_of_the_time_between_two_reads() -> None:
    before, now = counted(1_000, 10, 1, 3, 5.0), counted(3_000, 14, 2, 4, 13.0)
    found = rates(now, before)
    assert (found.seconds, found.ended, found.steps, found.failed) == (2.0, 0.5, 2.5, 0.5)
    assert [(one.step, one.runs, one.mean_s) for one in found.slowest] == [("a", 4, 2.0)]
    assert [(one.step, one.runs, one.mean_s) for one in slowest_steps(before.durations)] == [("a", 10, 0.5)]


def test_a_restarted_server_counts_from_zero() -> None:
    found = rates(counted(3_000, 2, 0, 1, 1.0), counted(1_000, 100, 5, 50, 70.0))
    assert (found.steps, found.ended) == (1.0, 0.5)
    assert [(one.runs, one.mean_s) for one in found.slowest] == [(2, 0.5)]
