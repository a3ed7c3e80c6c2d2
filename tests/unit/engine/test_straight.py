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
from noetl.engine.straight import straight
from noetl.model.messages import AnyMessage, Ending, Record, Report, Signal, Start
from noetl.testing.play import BEGIN, Script, play, read
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
        step.name: replace(made.steps[step.name], onward=None, lets_in=False, is_simple=False, enters=False)
        for step in made.net.steps
    }
    vars(made).update(steps=slow, has_gates=True, is_plain=False, entrance=None, fixed_workload=None)
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


STARTS = (
    "",
    "workload: {a: 1, deep: {b: [2, {c: x}], when: 2026-01-02}}\n",
    "workload: {id: '{{ execution_id }}', a: 1}\n",
    "executor: {spec: {timeout_s: 60}}\n",
    "executor: {spec: {workload_schema: {properties: {a: {type: integer}}}}}\n",
    "executor: {spec: {final_step: s1}}\n",
)
PAYLOADS: tuple[dict[str, Any], ...] = ({}, {"a": 2}, {"a": "no number"}, {"deep": {"b": 1}, "more": None})
PLAIN = (
    "tool: {kind: noop}",
    "tool: {kind: noop}",
    "tool: {kind: noop, result: '{{ ctx.w }} {{ s0 }} {{ workload.a }}'}",
)
RECORDS = (
    Record("task.started", BEGIN - 5, "t", "k", payload={"kind": "noop"}),
    Record("task.started", BEGIN + 1, "t", "k"),
    Record("task.done", BEGIN + 9, "t", "k", 3, 1, "ok", 1.5, {"started_at": BEGIN}),
    Record("task.logged", BEGIN, "t", payload={"lines": ["x"]}),
    Record("policy.task.evaluated", BEGIN, "t", payload={"pipeline": {"counter": 1}}),
    Record("result.stored", BEGIN, "t"),
    Record("ctx.patched", BEGIN, payload={"writes": {"w": 7}}),
    Record("never.heard.of", BEGIN),
)


@st.composite
def plain_chains(draw: st.DrawFn) -> str:
    """Playbooks in which every step leads on to the next, and most that can be said at a start."""
    count = draw(st.integers(1, 4))
    lines = []
    for number in range(count):
        lines.append(f"- step: s{number}\n  {draw(st.sampled_from(PLAIN))}")
        onward = draw(st.sampled_from(["", "", "", "s0"])) if number + 1 == count else f"s{number + 1}"
        lines.append(f"  next: {onward}" if onward else "")
    return book("\n".join(lines), draw(st.sampled_from(STARTS)))


def first(data: st.DataObject, playbook: Plan) -> Start:
    """Give the message that starts an execution, with all that it may say."""
    said: dict[str, Any] = {
        "payload": data.draw(st.sampled_from(PAYLOADS)),
        "parent": data.draw(st.sampled_from([None, None, {"execution_id": "7", "run_id": "r#1"}])),
        "iter": data.draw(st.sampled_from([None, {"index": 1}])),
        "tags": data.draw(st.sampled_from([(), ("a", "b")])),
        "pool": data.draw(st.sampled_from(["", "near"])),
        "priority": data.draw(st.sampled_from([0, 0, 0, 5])),
        "trace": data.draw(st.sampled_from(["", "00-1-2-01"])),
    }
    return Start("m0", playbook.playbook.path, "hash", **said)


@given(plain_chains(), st.data())
@settings(max_examples=150)
def test_both_ways_start_pass_and_end_the_same(text: str, data: st.DataObject) -> None:
    """Plain reports, of which a few say more, over plain playbooks: what most executions are."""
    script = Both(text)
    script.tell(first(data, script.plan))
    for _ in range(data.draw(st.integers(1, 8))):
        if not script.work:
            break
        script.now += data.draw(st.integers(0, 3))
        item = data.draw(st.sampled_from(list(script.work.values())))
        epoch = data.draw(st.sampled_from([0, 1, 1, 2]))
        records = tuple(data.draw(st.lists(st.sampled_from(RECORDS), max_size=3)))
        if data.draw(st.integers(0, 5)) == 0:
            act(script, data)
        writes = {"w": 1} if data.draw(st.integers(0, 9)) == 0 else {}
        ending = None if data.draw(st.integers(0, 9)) == 0 else Ending("ok", data.draw(st.sampled_from([None, 1, {}])))
        script.tell(Report(script.message_id(), item.run_id, epoch, "w", records, writes, ending=ending))


def test_a_plain_execution_goes_the_straight_way_from_start_to_end() -> None:
    """Else the test above would compare the general way with itself."""
    script = Script(book("- {step: one, tool: {kind: noop}, next: two}\n- {step: two, tool: {kind: noop}}"))
    copy = Execution(script.state.execution_id)
    for message in (
        Start("m1", "tests/test", "hash"),
        Report("m2", "one#1", 1, "w", ending=Ending("ok", 1)),
        Report("m3", "two#1", 1, "w", ending=Ending("ok", 2)),
    ):
        assert straight(script.plan, copy, message, BEGIN) == script.tell(message)
    assert copy.status == "completed"


def test_what_is_not_plain_is_left_as_it_is() -> None:
    script = Script(book(CHAIN))
    script.start()
    before = checksum(script.state)
    for message in (
        Start("again", "tests/test", "hash"),
        Report("m2", "one#1", 1, "w", ending=Ending("error", None, {"kind": "timeout", "message": "no"})),
        Report("m3", "one#1", 1, "w", RECORDS, ending=Ending("ok", 1)),
        Report("m4", "one#1", 1, "w"),
        Report("m5", "two#1", 1, "w", ending=Ending("ok", 2)),
        Signal("m6", "go"),
    ):
        assert straight(script.plan, script.state, message, BEGIN) is None
    assert checksum(script.state) == before


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


SHARED = """
- {step: one, tool: {kind: noop, result: '{{ workload.deep }}'}, next: two}
- step: two
  tool: {kind: noop}
  set: {ctx.deep: '{{ workload.deep }}', ctx.deep.b: 9, ctx.deep.c.d: 9}
"""


def test_what_all_executions_share_of_a_workload_is_not_changed_by_one() -> None:
    text = book(SHARED, "workload: {deep: {b: 1, c: {d: 1}}, list: [1]}\n")
    script = Script(text, payload={"deep": {"c": {"e": 2}}}).run()
    assert script.state.workload == {"deep": {"b": 1, "c": {"d": 1, "e": 2}}, "list": [1]}
    plain = Script(text)
    plain.plan = script.plan
    plain.run()
    assert plain.state.ctx["deep"] == {"b": 9, "c": {"d": 9}}
    assert script.plan.fixed_workload == {"deep": {"b": 1, "c": {"d": 1}}, "list": [1]}
