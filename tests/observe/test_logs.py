"""A real control plane and worker log every event of the table, as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from noetl.masking.readers import ReaderMask
from noetl.model.messages import Cancel
from noetl.observe.logs.commits import CommitLog
from noetl.observe.logs.lines import SERVER_EVENTS, WORKER_EVENTS, JsonLines
from noetl.observe.logs.table import COMMON, LOG_EVENTS
from tests.unit.worker.system import System, system

pytestmark = pytest.mark.asyncio
FLOW = """
- step: begin
  tool: {kind: noop, result: {n: 1}}
  next:
    - {step: save, when: "{{ begin.n == 1 }}"}
- step: save
  tool:
    - make: {kind: duckdb, database: DATABASE, command: "CREATE TABLE rows (id INT, word TEXT)"}
    - write: {kind: duckdb, database: DATABASE, table: rows, mode: insert, values: {id: 1, word: abc}}
  next: each
- step: each
  loop: {in: [1, 2], iterator: one}
  tool: {kind: noop, result: "{{ one }}"}
  next: {spec: {mode: inclusive}, arcs: [{step: gated}, {step: flaky}]}
- step: gated
  spec: {policy: {admit: {rules: [{when: "{{ 1 / 0 }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
  tool: {kind: noop}
- step: flaky
  tool:
    - fails:
        kind: python
        code: raise ValueError("broken")
        spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2, delay: 0.01}}]}}
"""


@contextmanager
def json_lines(level: int = logging.DEBUG) -> Iterator[StringIO]:
    """Write the log events of this process as JSON lines, meanwhile."""
    lines, loggers = StringIO(), [logging.getLogger(one.name) for one in (SERVER_EVENTS, WORKER_EVENTS)]
    handler = logging.StreamHandler(lines)
    mask = ReaderMask()
    handler.setFormatter(JsonLines(lambda: mask, str))
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(level)
    try:
        yield lines
    finally:
        for events in (SERVER_EVENTS, WORKER_EVENTS):
            events.flush()
        for logger in loggers:
            logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET)


def logged(run: System) -> None:
    """Log what the system commits, as a server does."""
    log = CommitLog(run.control.cached_plan)
    assert log.is_on
    run.control.sequencer.hooks.register(commits=log.committed)


def read(lines: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


async def lose_a_lease(run: System) -> None:
    """Claim work and never report, so that its lease expires."""
    lost = await run.start("- {step: far, tool: {kind: noop, spec: {pool: far}}}")
    assert await run.control.claim("gone", ["far"], 1, 20)
    async with asyncio.timeout(20):
        while not await run.control.claim("second", ["far"], 1, 20):
            pass
    await run.tell(lost, Cancel("stop", "no longer wanted"))
    await run.ended(lost)


async def test_every_log_event_is_logged_with_its_fields(tmp_path: Path) -> None:
    with json_lines() as lines:
        async with system(lease_s=0.5) as run:
            logged(run)
            assert (await run.run(FLOW.replace("DATABASE", str(tmp_path / "rows.duckdb"))))["status"] == "failed"
            await lose_a_lease(run)
    found = read(lines)
    assert {line["event"] for line in found} == set(LOG_EVENTS)
    for line in found:
        about = LOG_EVENTS[line["event"]]
        assert set(line) - set(COMMON) - {"event", "epoch"} <= set(about.fields)
        assert line["level"] == logging.getLevelName(about.level)
        assert line["logger"] == f"noetl.{about.source}.events"
        assert line["workflow_ref"] == "tests/test"
    for name, about in LOG_EVENTS.items():
        seen = set().union(*(line.keys() for line in found if line["event"] == name))
        assert set(about.fields) - {"not_before", "reason", "edge_index"} <= seen, name
    [stored] = [line for line in found if line["event"] == "sink_write"]
    assert len(stored["checksum"]) == 16
    assert stored["size_bytes"] > 0
    assert "abc" not in lines.getvalue()


async def test_lines_say_what_the_events_say(tmp_path: Path) -> None:
    with json_lines() as lines:
        async with system() as run:
            logged(run)
            await run.run(FLOW.replace("DATABASE", str(tmp_path / "rows.duckdb")))
    by_event: dict[str, list[dict[str, Any]]] = {}
    for line in read(lines):
        by_event.setdefault(line["event"], []).append(line)
    [ended] = [line for line in by_event["step_done"] if line["step_id"] == "each"]
    assert ended["counters"] == {"total": 2, "succeeded": 2, "failed": 0, "skipped": 0, "completed": 2}
    assert [line["loop_plan"] for line in by_event["step_dispatch"] if line["step_id"] == "each"] == [
        {"total": 2, "mode": "sequential"}
    ]
    [edge] = [line for line in by_event["route_edge_selected"] if line["target_step"] == "save"]
    assert (edge["from_step"], edge["edge_index"], edge["condition"]) == ("begin", 0, "{{ begin.n == 1 }}")
    assert [line["reason"] for line in by_event["step_called"]][:2] == ["workflow.started", "predecessor:begin"]
    [sink] = by_event["sink_done"]
    assert (sink["sink_id"], sink["sink_type"], sink["ok"]) == ("duckdb:rows", "duckdb", True)
    [again] = by_event["task_retry"]
    assert (again["attempt"], again["next_delay_ms"], again["error_class"]) == (2, 10, "FatalError")
    [letter] = by_event["task_dlq"]
    assert (letter["step_id"], letter["attempt"], letter["error"]) == (
        "flaky",
        2,
        "ValueError: broken (line 1 of the code)",
    )
    [wrong] = by_event["when_eval_error"]
    assert (wrong["step_id"], wrong["action"]) == ("gated", "park")


async def test_at_the_level_warning_only_what_went_wrong_is_logged(tmp_path: Path) -> None:
    with json_lines(logging.WARNING) as lines:
        async with system() as run:
            logged(run)
            await run.run(FLOW.replace("DATABASE", str(tmp_path / "rows.duckdb")))
    assert sorted(line["event"] for line in read(lines)) == ["task_dlq", "when_eval_error"]


async def test_a_level_that_is_off_registers_nothing() -> None:
    with json_lines(logging.CRITICAL):
        assert not CommitLog(lambda _: None).is_on
