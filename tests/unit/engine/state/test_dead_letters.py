"""What a dead letter is, what it says, and which failures share a cause."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.state.dead_letters import (
    EXCERPT_BYTES,
    MASK,
    change_of,
    excerpt,
    fingerprint,
    letter_id,
    without_secrets,
)
from noetl.model.letters import DeadLetter
from noetl.model.messages import Cancel, Ending, ItemEnd, LeaseLost, Report
from tests.unit.engine.given import Given, book, broke, done, given

ONE = book("  - {step: one, tool: {kind: noop}}")
LOOP = book(
    "  - {step: work, loop: {in: [a, b, c], iterator: x, spec: {policy: {failure: {mode: MODE}}}}, tool: {kind: noop}}"
)
ERROR = {"kind": "server_error", "message": "it broke", "retryable": True, "task": "work_task"}
LAST = {
    "tool": "http",
    "sink": "postgres:t",
    "attempts": 6,
    "first_seen": 1_700_000_000_000,
    "stack": "Traceback",
    "payload": {"spec": {"url": "http://x"}},
    "context": "{}",
}


def letters(found: Given) -> list[DeadLetter]:
    return [change.letter for change in found.decision.letters if change.letter is not None]


def items(*ends: ItemEnd, chunk: str = "c1") -> Report:
    return Report(f"items-{ends[0].index}", "work#1", 1, "w1", items=ends, chunk=chunk)


def test_a_step_whose_failure_no_arc_takes_is_a_letter() -> None:
    (letter,) = letters(given(ONE, broke("one#1")))
    assert letter.message_id == letter_id("9000", "one#1", None)
    assert (letter.step_id, letter.run_id, letter.loop_index, letter.path) == ("one", "one#1", None, "tests/test")
    assert (letter.reason, letter.status, letter.last_error) == ("fatal", "pending", "it broke")
    assert letter.error["kind"] == "server_error"


@pytest.mark.parametrize("policy", ["halt", "continue"])
def test_a_failure_that_stops_or_passes_its_step_is_a_letter(policy: str) -> None:
    text = book("  - {step: one, tool: {kind: noop}}", f"executor: {{spec: {{on_step_fail: {policy}}}}}")
    assert len(letters(given(text, broke("one#1")))) == 1


def test_a_failure_that_an_arc_takes_is_none() -> None:
    text = book(
        """  - {step: one, tool: {kind: noop}, next: [{step: two, when: "{{ event.name == 'step.failed' }}"}]}
  - {step: two, tool: {kind: noop}}"""
    )
    assert letters(given(text, broke("one#1"))) == []
    labelled = book(
        """  - step: one
    spec: {on_step_fail: "route_edge:out"}
    tool: {kind: noop}
    next: [{step: two, label: out, when: "{{ false }}"}]
  - {step: two, tool: {kind: noop}}"""
    )
    assert letters(given(labelled, broke("one#1"))) == []


def test_what_was_cancelled_is_none() -> None:
    found = given(ONE, Cancel("c", "enough"))
    assert found.state.status == "cancelled"
    assert letters(found) == []
    found = given(ONE, Cancel("c", "enough", run_id="one#1"))
    assert found.state.status == "failed"
    assert letters(found) == []


def test_a_failure_of_the_control_plane_is_none() -> None:
    text = book("  - {step: one, tool: {kind: noop}, set: {ctx.x: '{{ nowhere.y }}'}}")
    found = given(text, done("one#1"))
    assert found.state.status == "failed"
    assert letters(found) == []


@pytest.mark.parametrize("mode", ["best_effort", "fail_fast"])
def test_a_failed_item_is_a_letter_with_all_that_is_known(mode: str) -> None:
    found = given(LOOP.replace("MODE", mode))
    found.when(items(ItemEnd(0, "ok"), ItemEnd(1, "error", error=ERROR, last=LAST, key="k")))
    (letter,) = letters(found)
    assert letter == DeadLetter(
        message_id=letter_id("9000", "work#1", 1),
        execution_id="9000",
        step_id="work",
        run_id="work#1",
        reason="exhausted",
        attempts=6,
        last_error="it broke",
        fingerprint=fingerprint("tests/test", "work", "work_task", ERROR),
        first_seen=1_700_000_000_000,
        last_seen=found.at,
        path="tests/test",
        loop_index=1,
        loop_key="k",
        task="work_task",
        tool_kind="http",
        sink_id="postgres:t",
        last_stack="Traceback",
        payload={"spec": {"url": "http://x"}},
        context_excerpt="{}",
        error=ERROR,
    )


def test_exhausted_leases_are_letters_of_what_the_server_knows() -> None:
    found = given(LOOP.replace("MODE", "best_effort"), items(ItemEnd(0, "ok")))
    found.when(LeaseLost("l", "work#1", 1, "c1", exhausted=True, attempt=6))
    told = [(one.loop_index, one.reason, one.attempts, one.payload) for one in letters(found)]
    assert told == [(1, "lease", 6, {"args": {}, "item": "b"}), (2, "lease", 6, {"args": {}, "item": "c"})]
    (whole,) = letters(given(ONE, LeaseLost("l", "one#1", 1, exhausted=True, attempt=3)))
    assert (whole.reason, whole.attempts) == ("lease", 3)


def test_an_error_that_cannot_be_read_is_poison() -> None:
    (letter,) = letters(given(ONE, broke("one#1", kind="parse")))
    assert letter.reason == "poison"


def test_the_letter_follows_from_the_event() -> None:
    found = given(ONE, broke("one#1"))
    assert [change_of("tests/test", event) for event in found.log if change_of("tests/test", event)] == list(
        found.decision.letters
    )


def test_a_text_that_a_database_cannot_hold_is_changed() -> None:
    error = {"kind": "unknown", "message": "a\0b"}
    (letter,) = letters(given(ONE, Report("r", "one#1", 1, "w", ending=Ending("error", None, error))))
    assert letter.last_error == "a␀b"


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return fingerprint("p", "s", "t", first) == fingerprint("p", "s", "t", second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("row 17 has 3 columns", "row 4711 has 2 columns"),
        ("HTTP 404 at https://x.test/items/17?q=a", "HTTP 404 at https://x.test/items/18?q=bcd"),
        ("ValueError: invalid literal for int() with base 10: 'abc'", "ValueError: invalid literal for int() with base 10: 'x y'"),
        ("no object 9f86d081-884c-4d65-9a2f-eaa0c55ad015", "no object 00000000-884c-4d65-9a2f-eaa0c55ad015"),
        ("at 0x7f3a21", "at 0xdeadbeef"),
    ],
)  # fmt: skip
def test_failures_of_one_cause_share_a_fingerprint(first: str, second: str) -> None:
    assert same({"kind": "x", "message": first}, {"kind": "x", "message": second})


def test_failures_of_different_causes_do_not() -> None:
    base = {"kind": "server_error", "code": "HTTP_500", "message": "it broke"}
    for other in ({"kind": "timeout"}, {"code": "HTTP_502"}, {"message": "it burnt"}):
        assert not same(base, base | other)
    assert fingerprint("p", "s", "t", base) != fingerprint("p", "other", "t", base)
    key = {"kind": "python", "code": "PY_KeyError"}
    assert not same(key | {"message": "KeyError: 'name'"}, key | {"message": "KeyError: 'age'"})


def test_the_excerpt_is_the_end_of_the_context_without_secrets() -> None:
    text = excerpt({"workload": {"n": 1, "api_key": "s3cr3t"}, "ctx": {}, "iter": {"item": "x" * 3_000}})
    assert len(text.encode()) == EXCERPT_BYTES
    assert text.endswith('xxx"}}')
    assert MASK in excerpt({"workload": {"api_key": "s3cr3t"}})
    assert without_secrets([{"password": {"inner": 1}, "token": None, "x": 5}]) == [
        {"password": {"inner": 1}, "token": None, "x": 5}
    ]


def test_an_item_of_a_compensation_is_a_letter_when_no_try_is_left() -> None:
    text = book(
        """  - {step: a, tool: {kind: noop}, compensate: undo, next: b}
  - {step: b, tool: {kind: noop}}
  - {step: undo, loop: {in: [1], iterator: x}, tool: {kind: noop}}""",
        "policy: {rollback: on_fail}",
    )
    found = given(text, done("a#1"), broke("b#1"))
    for number in (1, 2, 3):
        run = f"undo#{number}"
        end = ItemEnd(0, "error", error=ERROR)
        found.when(Report(run, run, 1, "w1", items=(end,), chunk="c1"))
        assert len(letters(found)) == (number == 3)
    assert found.state.compensated is False
