"""Fetching a decision's inputs does not block other messages; it may fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noetl.blobs.memory import MemoryBlobs
from noetl.model.errors import StoreUnavailable
from tests.unit.worker.system import System, system

pytestmark = pytest.mark.asyncio
LOOKUP = """
- step: make
  tool: {kind: python, code: "result = {'a': 1, 'b': 2, 'rows': ['x' * 100] * 1000}"}
  next:
    spec: {mode: exclusive}
    arcs:
      - {step: found, when: "{{ make[workload.key] == 2 }}"}
      - {step: not_found}
- {step: found, tool: {kind: noop, result: found}}
- {step: not_found, tool: {kind: noop, result: not found}}
"""
ROOT = "workload: {key: b}\n"


class Slow(MemoryBlobs):
    """Blobs whose reading waits for a word, or fails as often as told."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.failures = failures
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        self.asked.set()
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("away")
        await self.go.wait()
        return await super().get(ref, start, length)


async def lookup(made: System) -> Any:
    row = await made.run(LOOKUP, ROOT)
    assert row["status"] == "completed", row
    return row["result"]


async def test_other_executions_go_on_while_one_is_loaded_for() -> None:
    blobs = Slow()
    async with system(2, blobs=blobs) as made:
        first = await made.start(LOOKUP, ROOT)
        await blobs.asked.wait()
        row = await made.run("- {step: one, tool: {kind: noop, result: 1}}")
        assert row["result"] == 1
        blobs.go.set()
        assert (await made.ended(first))["result"] == "found"


async def test_a_store_that_is_away_is_tried_again() -> None:
    blobs = Slow(failures=3)
    blobs.go.set()
    async with system(blobs=blobs) as made:
        assert await lookup(made) == "found"
        assert blobs.failures == 0


async def test_a_result_that_is_too_large_to_be_loaded_is_an_error_that_says_so() -> None:
    async with system(load_max_bytes=1000) as made:
        execution = await made.start(LOOKUP, ROOT)
        assert (await made.ended(execution))["result"] == "not found"
        routed = next(event for event in await made.events(execution, "next.evaluated") if event.entity_id == "make")
        assert "reads at most 1,000" in routed.payload["arcs"][0]["error"]


async def test_a_loop_over_a_result_that_is_too_large_to_be_loaded_fails_with_a_reference_error() -> None:
    loop = """
- step: make
  tool: {kind: python, code: "result = {'rows': ['x' * 100] * 1000}"}
  next: each
- step: each
  loop: {in: "{{ make.rows | reverse | list }}", iterator: row}
  tool: {kind: noop}
"""
    async with system(load_max_bytes=1000) as made:
        row = await made.run(loop)
        assert (row["status"], row["error"]["kind"]) == ("failed", "reference")
        assert "reads at most 1,000" in row["error"]["message"]


async def test_a_result_that_is_gone_is_an_error_of_the_condition() -> None:
    class Empty(MemoryBlobs):
        async def put(self, ref: str, data: bytes, meta: Any) -> None:
            """Keep nothing."""

    async with system(blobs=Empty()) as made:
        execution = await made.start(LOOKUP, ROOT)
        assert (await made.ended(execution))["result"] == "not found"
        routed = next(event for event in await made.events(execution, "next.evaluated") if event.entity_id == "make")
        assert "is not there" in routed.payload["arcs"][0]["error"]


async def test_a_server_may_stop_while_it_loads() -> None:
    blobs = Slow()
    async with system(blobs=blobs) as made:
        await made.start(LOOKUP, ROOT)
        await blobs.asked.wait()
