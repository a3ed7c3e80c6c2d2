"""Tests that the straight way and the general one decide the same: every event, state, work and timer, over many playbooks."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from noetl.engine.decide import Decision
from noetl.engine.plan import Plan, plan
from noetl.engine.state import Execution, checksum
from noetl.model.messages import AnyMessage
from noetl.testing.play import Script, play, read
from tests.unit.engine.given import book
from tests.unit.engine.test_laws import act, nets

GATE = ", policy: {admit: {rules: [{when: '{{ ctx.open }}', then: {allow: true}}]}}"
TOOLS = ("", "tool: {kind: noop}", "tool: {kind: noop}", "tool: {kind: noop, result: '{{ ctx.w }}'}")
MORE = ("", "", "", "set: {ctx.last: '{{ outcome.status }}'}", "compensate: s1", "loop: {in: [1, 2], iterator: i}")
SPECS = ("", "", "", ", timeout_s: 5", ", policy: {lifecycle: {deadline_s: 9}}", ", pool: near", GATE)
ARCS = ("", "", "", ", when: '{{ not ctx.stop }}'", ", args: {a: 1}", ", set: {ctx.seen: 1}")


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Playbooks in which most steps have one bare arc, to a step further down, and some have more to say."""
    count = draw(st.integers(2, 7))
    lines = []
    for number in range(count):
        join = draw(st.sampled_from(["all", "all", "all", "each", "any", 2])) if number else "all"
        lines.append(f"- step: s{number}\n  spec: {{join: {join}{draw(st.sampled_from(SPECS))}}}")
        tool, more = draw(st.sampled_from(TOOLS)), draw(st.sampled_from(MORE))
        lines += [f"  {text}" for text in (tool, more if tool or not more.startswith("loop") else "") if text]
        targets = (
            draw(st.lists(st.integers(number + 1, count - 1), min_size=1, max_size=2)) if number + 1 < count else []
        )
        if targets:
            mode = draw(st.sampled_from(["exclusive", "inclusive"]))
            lines.append(f"  next:\n    spec: {{mode: {mode}}}\n    arcs:")
            lines += [f"      - {{step: s{target}{draw(st.sampled_from(ARCS))}}}" for target in targets]
    said = [
        draw(st.sampled_from(["on_step_fail: halt", "on_step_fail: continue"])),
        *draw(st.lists(st.sampled_from([f"final_step: s{count - 1}", "max_parallel: 1", "priority: 2"]), unique=True)),
    ]
    rollback = draw(st.sampled_from(["", "rollback: on_fail\n"]))
    return book("\n".join(lines), f"{rollback}executor: {{spec: {{{', '.join(said)}}}}}")


def general(made: Plan) -> Plan:
    """Give a plan in which nothing goes a straight way."""
    slow = {
        step.name: replace(made.steps[step.name], onward=None, lets_in=False, is_simple=False)
        for step in made.net.steps
    }
    vars(made).update(steps=slow, has_gates=True)
    return made


class Both(Script):
    """An execution that is decided both ways, message by message."""

    def __init__(self, playbook: str, *given: Any, **more: Any) -> None:
        super().__init__(playbook, *given, **more)
        self.other = general(plan(read(playbook), "hash", more.get("defaults"))), Execution(self.state.execution_id)

    def _decided(self, message: AnyMessage) -> Decision:
        made = super()._decided(message)
        self._swap()
        again = super()._decided(message)
        self._swap()
        assert again == made
        assert msgspec.msgpack.encode(again) == msgspec.msgpack.encode(made)  # in the same order, too
        assert checksum(self.other[1]) == checksum(self.state)
        return made

    def _swap(self) -> None:
        (self.plan, self.state), self.other = self.other, (self.plan, self.state)


@given(chains() | nets(), st.data())
@settings(max_examples=150)
def test_both_ways_decide_the_same(text: str, data: st.DataObject) -> None:
    script = Both(text)
    script.start()
    for _ in range(data.draw(st.integers(1, 25))):
        if script.state.phase == "ended":
            break
        act(script, data)
    script.check()


CHAIN = """
- {step: one, tool: {kind: noop}, next: two}
- {step: two, tool: {kind: noop}, next: three}
- {step: three}
"""


def test_a_plain_chain_goes_the_straight_way() -> None:
    known = plan(read(book(CHAIN)), "hash").steps
    assert [onward and onward.token for onward in (known["one"].onward, known["three"].onward)] == [
        {"step": "two", "args": {}, "lineage": {}, "event": {"name": "step.done", "step": "one"}},
        None,
    ]
    assert all(known[name].lets_in for name in known)
    assert [known[name].is_simple for name in ("one", "three")] == [True, False]


def test_what_a_plan_wrote_once_is_not_changed_by_executions() -> None:
    """The payloads of a straight way are shared by all its runs, so nobody may write into them."""
    script = Script(book(CHAIN)).run()
    fresh = plan(read(book(CHAIN)), "hash")
    assert script.plan.steps["one"].onward == fresh.steps["one"].onward
    assert play(book(CHAIN)).events == script.events
