"""Executions that wait for a decision: found, explained, approved and rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.running import Folder, summary, until

ASK = """
- step: ask
  tool: { kind: wait, signal: release, LIMIT }
  next:
    - { step: publish, when: "{{ event.name == 'step.done' and ask.approved }}", args: { answer: "{{ ask }}" } }
    - { step: drop, args: { answer: "{{ ask }}" } }
- step: publish
  tool: { kind: noop, result: { did: publish, answer: "{{ args.answer }}" } }
- step: drop
  tool: { kind: noop, result: { did: drop, answer: "{{ args.answer }}" } }
"""
TIMED, UNTIMED = ASK.replace("LIMIT", "timeout_s: 86400"), ASK.replace(", LIMIT", "")
GATE = """
- step: gate
  spec: { policy: { admit: { rules: [{ when: "{{ ctx.signals.go.approved }}", then: { allow: true } }] } } }
  tool: { kind: noop, result: open }
"""
CALLBACK = "- step: pay\n  tool: { kind: wait, signal: paid }"
TWO = """
- step: begin
  next: [one, two]
- step: one
  tool: { kind: wait, signal: first }
  set: { ctx.one: "{{ one.approved }}" }
- step: two
  tool: { kind: wait, signal: second }
  set: { ctx.two: "{{ outcome.result.approved }}" }
"""


def rows(folder: Folder, *more: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder.call("runs", "--json", *more).out.splitlines()]


def killed_while_it_waits(folder: Folder, workflow: str, **sections: Any) -> str:
    """Return an execution that waits with a time limit, and that no process drives."""
    with folder.started("run", folder.playbook(workflow, **sections)) as process:
        until(lambda: bool(folder.ids()) and "step.suspended" in {e["event_type"] for e in folder.events()}, "the wait")
        process.kill()
        process.wait(timeout=60)
    return folder.ids()[0]


@pytest.mark.parametrize(
    ("workflow", "sections"), [(TIMED, {}), (UNTIMED, {"executor": {"spec": {"timeout_s": 86400}}})]
)
def test_a_wait_with_a_time_limit_is_waiting_and_needs_a_signal(
    folder: Folder, workflow: str, sections: dict[str, Any]
) -> None:
    execution = killed_while_it_waits(folder, workflow, **sections)
    (row,) = rows(folder, "--status", "waiting")
    assert (row["execution_id"], row["status"], row["needs_signal"]) == (execution, "waiting", True)
    assert row["signals"] == ["release"]
    assert rows(folder, "--status", "running") == []
    assert json.loads(folder.call("status", execution, "--json").out)["status"] == "waiting"
    assert f"noetl resume {execution}" in folder.call("status", execution).out  # its time limit needs a driver


def test_runs_and_explain_tell_what_can_answer(folder: Folder) -> None:
    ran = folder.run(folder.playbook(UNTIMED))
    assert f"waits for `noetl signal {ran.id} release`" in folder.call("runs").out
    (standing,) = json.loads(folder.call("explain", ran.id, "--json").out)["standing"]
    assert (standing["signal"], standing["decision"]) == ("release", True)
    told = folder.call("explain", ran.id).out
    assert f"`noetl approve {ran.id}` or `noetl reject {ran.id}`" in told
    assert "answered by any process that can write this store" in told
    assert f"noetl approve {ran.id}" in folder.call("status", ran.id).out


def test_runs_tell_what_a_paused_one_and_a_gate_wait_for(folder: Folder) -> None:
    gate = folder.run(folder.playbook(GATE))
    assert f"waits for `noetl signal {gate.id} go`" in folder.call("runs").out
    assert f"noetl signal {gate.id} go" in folder.call("explain", gate.id).out
    assert folder.call("pause", gate.id).code == 0
    assert f"waits for `noetl unpause {gate.id}`" in folder.call("runs").out


def test_runs_of_a_gate_over_ctx_name_no_signal(folder: Folder) -> None:
    ran = folder.run(folder.playbook(GATE.replace("ctx.signals.go.approved", "ctx.ready")))
    assert f"waits for a change: `noetl explain {ran.id}`" in folder.call("runs").out


@pytest.mark.parametrize(("command", "did"), [("approve", "publish"), ("reject", "drop")])
@pytest.mark.parametrize("workflow", [TIMED, UNTIMED])
def test_a_decision_is_the_answer_of_the_wait(folder: Folder, workflow: str, command: str, did: str) -> None:
    if workflow is TIMED:
        execution = killed_while_it_waits(folder, workflow)
    else:
        execution = folder.run(folder.playbook(workflow)).id
    done = summary(folder.call(command, execution, "--by", "ada", "--comment", "fine by me", "--json"))
    answer = {"approved": command == "approve", "by": "ada", "comment": "fine by me"}
    assert (done.code, done.result) == (0, {"did": did, "answer": answer})


def test_a_decision_names_its_user_unless_another_is_given(folder: Folder) -> None:
    ran = folder.run(folder.playbook(UNTIMED))
    done = summary(folder.call("approve", "last", "--json", LOGNAME="grace"))
    assert done.id == ran.id
    assert done.result["answer"] == {"approved": True, "by": "grace", "comment": ""}


def test_a_gate_that_reads_approved_takes_a_decision(folder: Folder) -> None:
    ran = folder.run(folder.playbook(GATE))
    assert summary(folder.call("approve", ran.id, "--json")).result == "open"


def test_a_wait_that_expects_no_decision_gets_none(folder: Folder) -> None:
    ran = folder.run(folder.playbook(CALLBACK))
    refused = folder.call("approve", ran.id)
    assert (refused.code, refused.out) == (2, "")
    assert f"Execution {ran.id} waits for no decision" in refused.err
    assert "the signal `paid`" in refused.err
    assert "--signal paid" in refused.err
    assert folder.events(ran.id, "--type", "signal.received") == []
    assert summary(folder.call("approve", ran.id, "--signal", "paid", "--json")).result["approved"] is True


def test_one_of_several_decisions_is_chosen_by_its_signal(folder: Folder) -> None:
    ran = folder.run(folder.playbook(TWO))
    refused = folder.call("reject", ran.id)
    assert refused.code == 2
    assert "`first`" in refused.err
    assert "`second`" in refused.err
    assert "--signal NAME" in refused.err
    assert folder.call("reject", ran.id, "--signal", "third").code == 2
    assert folder.events(ran.id, "--type", "signal.received") == []
    assert folder.call("reject", ran.id, "--signal", "second").code == 4
    done = summary(folder.call("approve", ran.id, "--json"))  # one is left
    assert (done.code, done.data["ctx"]["one"], done.data["ctx"]["two"]) == (0, True, False)


def test_what_waits_for_nothing_or_has_ended_takes_no_decision(folder: Folder) -> None:
    ran = folder.run(folder.playbook("- step: a\n  tool: { kind: noop }"))
    refused = folder.call("approve", ran.id)
    assert (refused.code, "has ended (completed)" in refused.err) == (2, True)
