"""`noetl fork`: a new execution from the middle of an old one."""

from __future__ import annotations

import pytest

from tests.acceptance.running import Folder, Summary, summary

PLAY = """
- step: load
  tool:
    kind: python
    code: |
      with open("effects.txt", "a") as file:
          file.write("load\\n")
      result = {"n": 2}
  set: { ctx.n: "{{ outcome.result.n }}" }
  next: [{ step: use }]
- step: use
  tool: { kind: noop, result: "{{ ctx.n * workload.factor }}" }
"""


def fork(folder: Folder, *arguments: str) -> Summary:
    return summary(folder.call("fork", *arguments, "--json"))


def test_a_fork_shares_what_was_before_and_runs_what_comes_after(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"factor": 10}))
    forked = fork(folder, ran.id, "--from", "use", "--patch", "ctx.n=5")
    assert (forked.code, forked.status, forked.result) == (0, "completed", 50)
    assert forked.id != ran.id
    assert folder.lines("effects.txt") == ["load"]
    events = folder.events(forked.id)
    assert {event["execution_id"] for event in events} == {forked.id}
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["payload"]["forked_from"]["execution_id"] == ran.id
    assert summary(folder.call("status", ran.id, "--json")).result == 20


def test_a_fork_of_the_beginning_runs_everything_again(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"factor": 10}))
    forked = fork(folder, ran.id, "--from", "load", "--patch", "workload.factor=3")
    assert forked.result == 6
    assert folder.lines("effects.txt") == ["load", "load"]


def test_a_fork_from_an_event_does_again_what_was_under_way(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"factor": 10}))
    started = next(e["seq"] for e in folder.events(ran.id) if e["event_type"] == "step.started")
    forked = fork(folder, ran.id, "--from", str(started))
    assert forked.result == 20
    assert folder.lines("effects.txt") == ["load", "load"]


def test_a_failed_execution_goes_on_with_the_corrected_playbook(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY.replace("ctx.n * workload.factor", "ctx.n.missing.x")))
    assert ran.status == "failed"
    corrected = folder.playbook(PLAY.replace("ctx.n * workload.factor", "ctx.n + 40"), name="corrected")
    forked = fork(folder, ran.id, "--from", "use", "--playbook", corrected)
    assert (forked.status, forked.result) == ("completed", 42)
    assert folder.lines("effects.txt") == ["load"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "nowhere"), "load, use"),
        (("--from", "999"), "there is no event 999"),
        (("--from", "1"), "nothing has run"),
        (("--from", "use", "--patch", "n=1"), "ctx.key=value"),
    ],
)
def test_a_fork_that_cannot_be(folder: Folder, arguments: tuple[str, ...], said: str) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"factor": 10}))
    refused = folder.call("fork", ran.id, *arguments)
    assert refused.code == 2
    assert said in refused.err
    assert folder.ids() == [ran.id]


def test_a_changed_workload_must_fit_the_schema(folder: Folder) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    workflow = (
        "- step: a\n  tool: { kind: noop }\n  next: b\n- step: b\n  tool: { kind: noop, result: '{{ workload.n }}' }"
    )
    ran = folder.run(folder.playbook(workflow, workload={"n": 1}, executor={"spec": {"workload_schema": schema}}))
    refused = folder.call("fork", ran.id, "--from", "b", "--patch", "workload.n=two")
    assert (refused.code, refused.out) == (2, "")
    assert "workload.n: 'two' is not of type 'integer'" in refused.err
    assert folder.ids() == [ran.id]
    assert summary(folder.call("fork", ran.id, "--from", "b", "--patch", "workload.n=2", "--json")).result == 2
