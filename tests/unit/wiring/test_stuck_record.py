"""A template that ends processes is named, and not evaluated again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from noetl.expr import EvaluationError, compile_template
from noetl.expr.runtime.running import RUNNING
from noetl.wiring.stuck_record import StuckRecord

EVALUATES = """
    import asyncio, os, signal, sys
    from noetl.expr import compile_template
    from noetl.expr.runtime.running import RUNNING
    from noetl.wiring.watchdog import watched

    def busy():
        return (3 ** 5_000_000) ** 40  # one call of C code, which holds the interpreter's lock for minutes

    def killed():
        os.kill(os.getpid(), signal.SIGKILL)

    async def main():
        async with watched(stuck_s=2):
            RUNNING.begin("7")
            print(compile_template("{{ gen_uuid() }}").evaluate({}, functions={"gen_uuid": lambda: "2"}))
            compile_template("{{ now() }}").evaluate({}, functions={"now": globals()[sys.argv[1]]})

    asyncio.run(main())
"""


def run(home: Path, hole: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", dedent(EVALUATES), hole]
    environment = {**os.environ, "XDG_STATE_HOME": str(home)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_a_template_that_ended_two_processes_is_refused(tmp_path: Path) -> None:
    for _ in range(2):
        ended = run(tmp_path, "busy")
        assert (ended.returncode, ended.stdout) == (-signal.SIGPROF, "2\n")
    refused = run(tmp_path, "busy")
    assert refused.returncode == 1
    assert "EvaluationError: evaluating `{{ now() }}` ended the processes that tried" in refused.stderr
    assert run(tmp_path, "busy").stderr.count("{{ now() }}") == 1  # only by the error: it is known


def test_a_process_that_is_killed_otherwise_counts_for_nothing(tmp_path: Path) -> None:
    for _ in range(3):
        assert run(tmp_path, "killed").returncode == -signal.SIGKILL
    assert StuckRecord(tmp_path / "noetl" / "evaluations").refused() == frozenset()
    assert list(tmp_path.glob("noetl/evaluations/*.evaluation")) == []


def test_the_record_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    record = StuckRecord(tmp_path)
    with record.kept() as file:
        record.note("7", "{{ a }}")
        os.write(file, b"a stack")
        assert StuckRecord(tmp_path).refused() == frozenset()
        assert len(list(tmp_path.glob("*.evaluation"))) == 1
    assert list(tmp_path.glob("*.evaluation")) == []


def test_what_cannot_be_read_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "stuck.json").write_bytes(b"\xff{")
    (tmp_path / "1.evaluation").write_bytes(b"\xff" * 5_000)
    assert StuckRecord(tmp_path).refused() == frozenset()


def test_a_template_is_refused_in_its_execution_only() -> None:
    RUNNING.watch(lambda execution_id, template: None, {("7", "{{ range(3) | sum }}")})
    try:
        for execution_id, template in (("8", "{{ range(3) | sum }}"), ("7", "{{ range(4) | sum }}")):
            RUNNING.begin(execution_id)
            compile_template(template).evaluate({})
        RUNNING.begin("7")
        with pytest.raises(EvaluationError, match="not tried again in this execution"):
            compile_template("{{ range(3) | sum }}").evaluate({})
    finally:
        RUNNING.watch(None, frozenset())
        RUNNING.begin("")
