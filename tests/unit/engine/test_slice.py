"""Tests slicing: work carries what its templates can read, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.engine.given import book, done, given

HEAD = "workload: {w1: 1, w2: 2}"


def sliced(tool: str) -> Any:
    text = book(
        f"""
- step: one
  tool: {{kind: noop}}
  set: {{ctx.a: 1, ctx.b: 2}}
  next:
    arcs: [{{step: two, args: {{x: 1}}}}]
- step: two
  tool: {tool}
""",
        HEAD,
    )
    return given(text, done("one#1", {"r": 1})).decision.work[0].scopes


@pytest.mark.parametrize(
    ("message", "workload", "ctx", "steps"),
    [
        ("plain", {}, {}, {}),
        ("{{ workload.w1 }}", {"w1": 1}, {}, {}),
        ("{{ w2 }}", {"w2": 2}, {}, {}),
        ("{{ ctx.a }}", {}, {"a": 1}, {}),
        ("{{ vars.b }}", {}, {"b": 2}, {}),
        ("{{ b }}", {}, {"b": 2}, {}),
        ("{{ ctx }}", {}, {"a": 1, "b": 2}, {}),
        ("{{ ctx[args.x] }}", {}, {"a": 1, "b": 2}, {}),
        ("{{ one.r }}", {}, {}, {"one": {"r": 1}}),
    ],
)
def test_only_what_is_read_is_sent(message: str, workload: Any, ctx: Any, steps: Any) -> None:
    scopes = sliced(f'{{kind: noop, message: "{message}"}}')
    assert (scopes["workload"], scopes["ctx"], scopes["steps"]) == (workload, ctx, steps)
    assert scopes["args"] == {"x": 1}


def test_python_that_mentions_everything_gets_everything() -> None:
    scopes = sliced('{kind: python, code: "result = context"}')
    assert scopes["workload"] == {"w1": 1, "w2": 2}
    assert scopes["steps"] == {"one": {"r": 1}}
    assert sliced('{kind: python, code: "result = 1"}')["steps"] == {}


def test_statuses_are_sent_where_templates_ask_for_steps() -> None:
    assert sliced("{kind: noop, message: \"{{ done('one') }}\"}")["statuses"] == {"one": "ok"}
    assert sliced("{kind: noop}")["statuses"] == {}
