"""Which waits and gates expect a decision."""

from __future__ import annotations

import pytest

from noetl.engine.queries.decisions import expects_decision
from noetl.testing.play import Script

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"
ASK = "- step: ask\n  tool: [{reply: {kind: wait, signal: go, MORE}}]\n  next: after\n  ROUTER\n"
AFTER = "- step: after\n  tool: {kind: noop, result: RESULT}\n"


def decides(more: str = "timeout_s: 9", router: str = "desc: x", result: str = "1") -> bool:
    text = HEAD + ASK.replace("MORE", more).replace("ROUTER", router) + AFTER.replace("RESULT", result)
    return expects_decision(Script(text, {}, payload={}).plan, "ask")


@pytest.mark.parametrize(
    ("more", "router", "result"),
    [
        ("set: {ctx.ok: '{{ output.data.approved }}'}", "desc: x", "1"),
        ("timeout_s: 9", "set: {ctx.ok: '{{ outcome.result.approved }}'}", "1"),
        ("timeout_s: 9", "set: {ctx.ok: '{{ ask.reply.approved }}'}", "1"),
        ("timeout_s: 9", "desc: x", "'{{ ask.approved }}'"),
        ("timeout_s: 9", "set: {ctx.all: '{{ ask }}', ctx.ok: '{{ ask.approved }}'}", "1"),
    ],
)
def test_reading_approved_of_the_answer_makes_it_a_decision(more: str, router: str, result: str) -> None:
    assert decides(more, router, result)


@pytest.mark.parametrize("result", ["1", "'{{ ask.paid }}'", "'{{ ask }}'", "'{{ ctx.approved }}'"])
def test_another_answer_is_no_decision(result: str) -> None:
    assert not decides(result=result)
