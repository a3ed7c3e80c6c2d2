"""Placement of work: pools and priorities, as text and templates, layered."""

from __future__ import annotations

import pytest

from noetl.model.messages import LeaseLost, PatchCtx
from tests.unit.engine.given import Given, book, given


def placed(spec: str, head: str = "") -> Given:
    return given(book(f"- step: s\n  spec: {spec}\n  tool: {{kind: noop}}", head), payload={"tier": "gpu", "urgent": 7})


@pytest.mark.parametrize(
    ("spec", "head", "pool", "priority"),
    [
        ("{}", "", "", 0),
        ("{pool: big, priority: 3}", "", "big", 3),
        ("{}", "executor: {spec: {pool: big, priority: 3}}", "big", 3),
        ("{pool: small}", "executor: {spec: {pool: big, priority: 3}}", "small", 3),
        ('{pool: "{{ workload.tier }}-pool", priority: "{{ workload.urgent + 1 }}"}', "", "gpu-pool", 8),
        ("{}", 'executor: {spec: {pool: "{{ tier }}", priority: "{{ urgent }}"}}', "gpu", 7),
        ('{strict_templates: false, pool: "{{ ctx.gone }}"}', "", "", 0),
        ('{priority: "5"}', "", "", 5),
    ],
)
def test_pool_and_priority(spec: str, head: str, pool: str, priority: int) -> None:
    (work,) = placed(spec, head).decision.work
    assert (work.pool, work.priority) == (pool, priority)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ('{pool: "{{ ctx.gone }}"}', "`ctx.gone` is undefined"),
        ("{pool: [a]}", "no name of a pool"),
        ('{priority: "{{ tier }}"}', "no whole number"),
        ("{priority: true}", "no whole number"),
    ],
)
def test_what_cannot_be_placed_fails_and_is_in_no_queue(spec: str, words: str) -> None:
    scene = placed(spec)
    assert scene.state.status == "failed"
    assert scene.state.error is not None
    assert words in scene.state.error["message"]
    assert "step `s` cannot be scheduled" in scene.state.error["message"]
    assert not scene.decision.work


def test_work_that_is_handed_out_again_stays_in_its_pool() -> None:
    text = book("""
- step: a
  set: {ctx.where: first}
  next: s
- step: s
  spec: {pool: "{{ ctx.where }}"}
  tool: {kind: noop}
""")
    scene = given(text, PatchCtx("p", {"where": "second"}), LeaseLost("l", "s#1", 1))
    assert [work.pool for work in scene.decision.work] == ["first"]


def test_ranges_of_a_loop_go_where_their_step_goes() -> None:
    text = book(
        "- step: s\n  spec: {pool: big, priority: 2}\n  loop: {in: [1, 2], iterator: i, spec: {mode: parallel}}"
    )
    scene = given(text + "\n  tool: {kind: noop}")
    assert [(work.pool, work.priority) for work in scene.decision.work] == [("big", 2)] * 2


@pytest.mark.parametrize(
    ("step", "task", "head", "pool", "tags"),
    [
        ("{}", "{}", "", "", ()),
        ("{pool: big}", "{pool: gpu}", "", "gpu", ()),
        ("{requires: {tags: [a]}}", "{requires: {tags: [b]}}", "", "", ("a", "b")),
        ("{}", "{requires: {tags: [b]}}", "executor: {spec: {requires: {tags: [x]}}}", "", ("b", "x")),
        ("{requires: {tags: [a]}}", "{}", "executor: {spec: {requires: {tags: [x]}}}", "", ("a",)),
    ],
)
def test_what_tasks_ask_for_goes_with_the_work(
    step: str, task: str, head: str, pool: str, tags: tuple[str, ...]
) -> None:
    workflow = (
        f"- step: s\n  spec: {step}\n  tool: [{{name: one, kind: noop}}, {{name: two, kind: noop, spec: {task}}}]"
    )
    (work,) = given(book(workflow, head)).decision.work
    assert (work.pool, work.requires) == (pool, tags)


def test_the_settings_of_a_loop_lie_over_those_of_its_step() -> None:
    loop = "loop: {in: [1], iterator: x, spec: {pool: inner, requires: {tags: [b]}}}"
    scene = given(
        book(f"- step: s\n  spec: {{pool: outer, requires: {{tags: [a]}}}}\n  {loop}\n  tool: {{kind: noop}}")
    )
    (work,) = scene.decision.work
    assert (work.pool, work.requires) == ("inner", ("b",))


def test_tasks_of_two_pools_are_no_pipeline() -> None:
    tool = "tool: [{name: a, kind: noop, spec: {pool: p}}, {name: b, kind: noop, spec: {pool: q}}]"
    scene = given(book(f"- step: s\n  {tool}"))
    assert scene.state.error is not None
    assert "its tasks name the pools `p` and `q`" in scene.state.error["message"]
    assert not scene.decision.work
