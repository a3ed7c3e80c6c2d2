"""Pagination: a task that jumps back to itself, inline or not, and suspended."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.model.refs import expanded, is_manifest
from tests.unit.worker.system import system

pytestmark = pytest.mark.asyncio
WORKFLOW = """
- step: pages
  tool:
    - page:
        kind: noop
        result: {items: ["{{ (step.n or 0) * 2 }}", "{{ (step.n or 0) * 2 + 1 }}"], map: "{{ {'k' ~ (step.n or 0): 1} }}", text: "{{ 'x' * SIZE }}"}
        spec:
          result: CONTROLS
          policy:
            rules:
              - when: "{{ (step.n or 0) < 3 }}"
                then: {do: jump, to: MIDDLE, set: {step.n: "{{ (step.n or 0) + 1 }}"}}
              - else: {then: {do: break}}
    - again: {kind: sleep, seconds: 0.01, spec: {policy: {rules: [{else: {then: {do: jump, to: page}}}]}}}
  next: [read]
- step: read
  tool:
    kind: noop
    result: {first: "{{ pages.page[0] if pages.page is sequence and pages.page is not mapping else none }}", page: "{{ pages.page }}"}
"""


def workflow(controls: str, size: int = 1, middle: str = "page") -> str:
    return WORKFLOW.replace("CONTROLS", controls).replace("SIZE", str(size)).replace("MIDDLE", middle)


WHOLE: list[tuple[str, Any]] = [
    ("{strategy: concat, merge_path: items}", [0, 1, 2, 3, 4, 5, 6, 7]),
    ("{strategy: merge, merge_path: map}", {"k0": 1, "k1": 1, "k2": 1, "k3": 1}),
    ("{strategy: append, merge_path: items}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ("{strategy: replace, merge_path: items}", [6, 7]),
]


@pytest.mark.parametrize(("controls", "expected"), WHOLE)
@pytest.mark.parametrize("middle", ["page", "again"])
@pytest.mark.parametrize("size", [1, 30_000, 70_000])
async def test_pages_become_one(controls: str, expected: Any, middle: str, size: int) -> None:
    async with system() as made:
        execution = await made.start(workflow(controls, size, middle))
        row = await made.ended(execution)
        assert row["status"] == "completed", row
        assert row["result"]["page"] == expected
        assert row["result"]["first"] == (expected[0] if isinstance(expected, list) else None)
        updates = await made.events(execution, "result.manifest.updated")
        assert [event.payload["pages"] for event in updates] == ([1] * 4 if "replace" in controls else [1, 2, 3, 4])
        stored = await made.events(execution, "result.stored")
        kept = [event.payload["part"] for event in updates if event.payload["part"]]
        assert [event.payload["ref"] for event in stored if event.payload["ref"] in kept] == kept
        assert len(kept) == {1: 0, 30_000: 0 if "replace" in controls else 2, 70_000: 4}[size]
        (done,) = [event for event in await made.events(execution, "step.done") if event.entity_id == "pages"]
        assert is_manifest(expanded(done.payload["result"])["page"]) is bool(kept)


async def test_a_page_that_does_not_fit_fails_the_step() -> None:
    async with system() as made:
        row = await made.run(workflow("{strategy: concat, merge_path: nowhere}"))
        assert row["status"] == "failed"
        assert row["error"]["kind"] == "schema"
        assert "the pages of `page` cannot become one: a part of the result has nothing at" in row["error"]["message"]


async def test_without_a_strategy_the_last_page_counts() -> None:
    async with system() as made:
        row = await made.run(workflow("{inline_max_bytes: 1000}"))
        assert row["result"]["page"]["items"] == [6, 7]


async def test_pages_can_be_resolved_by_their_address() -> None:
    read = workflow("{strategy: concat, merge_path: items}", 70_000)
    read = (
        read[: read.index("- step: read")]
        + """- step: read
  tool: {kind: resolve, ref: "{{ pages.page._ref }}"}
"""
    )
    async with system() as made:
        row = await made.run(read)
        assert row["result"] == [0, 1, 2, 3, 4, 5, 6, 7], row
