"""Limits of the server that work counts for: its kinds and its pool."""

from __future__ import annotations

from noetl.engine.handlers.decide import NeedsLoad, decide
from noetl.engine.plan.plan import plan
from noetl.engine.state.execution import Execution
from noetl.model.messages import Start
from noetl.model.work import WORK_LIMITS
from noetl.testing.play import read
from tests.unit.engine.given import book

LIMITS = {"kind http": 2, "kind postgres": 1, "pool gpu": 1, "pool ": 9}
TEXT = book(
    """
- step: a
  SPEC
  tool: [{one: {kind: http, url: x}}, {two: {kind: noop}}, {three: {kind: workbook, task: load}}]
""",
    "workbook: [{name: load, kind: postgres, query: SELECT 1}, {name: unused, kind: shell, cmd: x}]",
)


def limits(spec: str, given: dict[str, int]) -> tuple[str, ...]:
    made = plan(read(TEXT.replace("SPEC", spec)), "hash", {WORK_LIMITS: given} if given else {})
    decision = decide(made, Execution("9"), Start("start", "tests/test", "hash", {}), 1)
    assert not isinstance(decision, NeedsLoad)
    return decision.work[0].limits


def test_work_counts_for_the_limits_of_its_kinds_and_its_pool() -> None:
    assert limits("", LIMITS) == ("kind http", "kind postgres", "pool ")
    assert limits("spec: {pool: gpu}", LIMITS) == ("kind http", "kind postgres", "pool gpu")
    assert limits("spec: {pool: other}", {"kind shell": 1, "kind http": 1}) == ("kind http",)


def test_without_limits_work_names_none() -> None:
    assert limits("spec: {pool: gpu}", {}) == ()
