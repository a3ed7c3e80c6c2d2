"""Executions that wait, and what people send them: signals, cancellation, pause."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing

import pytest

from tests.acceptance.running import Folder, Summary, summary, until

ASK = """
- step: ask
  tool: { kind: wait, signal: approved }
  next: [{ step: say, args: { by: "{{ ask.by }}" } }]
- step: say
  tool: { kind: noop, result: "by {{ args.by }}" }
"""
GATE = """
- step: gate
  spec: { policy: { admit: { rules: [{ when: "{{ ctx.signals.go.ok }}", then: { allow: true } }] } } }
  tool: { kind: noop, result: open }
"""


def send(folder: Folder, *arguments: str) -> Summary:
    return summary(folder.call(*arguments, "--json"))


@pytest.mark.parametrize(
    ("workflow", "name", "data", "result"),
    [(ASK, "approved", {"by": "me"}, "by me"), (GATE, "go", {"ok": True}, "open")],
)
def test_a_run_that_only_a_signal_can_move_ends_with_4_and_the_signal_drives_it(
    folder: Folder, workflow: str, name: str, data: object, result: str
) -> None:
    ran = folder.run(folder.playbook(workflow))
    assert (ran.code, ran.status, ran.result) == (4, "waiting", None)
    sent = send(folder, "signal", ran.id, name, json.dumps(data))
    assert (sent.code, sent.status, sent.result) == (0, "completed", result)


@pytest.mark.parametrize("data", ['{"by": me}', "[1,", '"open'])
def test_data_that_begins_like_json_and_is_none_is_refused(folder: Folder, data: str) -> None:
    ran = folder.run(folder.playbook(ASK))
    refused = folder.call("signal", ran.id, "approved", data)
    assert (refused.code, refused.out) == (2, "")
    assert "looks like JSON" in refused.err
    assert folder.events(ran.id, "--type", "signal.received") == []


def test_another_signal_leaves_it_waiting(folder: Folder) -> None:
    ran = folder.run(folder.playbook(ASK))
    assert send(folder, "signal", ran.id, "other").code == 4
    assert send(folder, "resume", ran.id).code == 4
    assert send(folder, "signal", ran.id, "approved", '{"by": "me"}').code == 0


def test_people_are_told_what_to_do(folder: Folder) -> None:
    ran = folder.call("run", folder.playbook(ASK))
    assert ran.code == 4
    assert "waits for the signal `approved`" in ran.err
    assert "noetl signal" in ran.err


def test_a_wait_ends_after_its_seconds(folder: Folder) -> None:
    ran = folder.run(folder.playbook(ASK), "--wait=0.2")
    assert (ran.code, ran.status) == (4, "waiting")


def test_a_run_that_waits_is_moved_by_a_signal_from_another_process(folder: Folder) -> None:
    with folder.started("run", folder.playbook(ASK), "--wait", "--json") as process:
        until(lambda: any(e["event_type"] == "step.suspended" for e in events(folder)), "the wait")
        sent = folder.call("signal", "last", "approved", '{"by": "you"}')
        assert sent.code == 0
        assert sent.out == ""
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["result"] == "by you"


def test_an_execution_that_waits_is_cancelled(folder: Folder) -> None:
    ran = folder.run(folder.playbook(ASK))
    cancelled = send(folder, "cancel", ran.id, "--reason", "not needed")
    assert (cancelled.code, cancelled.status) == (3, "cancelled")
    assert cancelled.data["error"]["message"] == "not needed"
    again = folder.call("cancel", ran.id)
    assert again.code == 2
    assert "has ended" in again.err


def test_a_running_execution_is_cancelled_from_another_process_and_its_work_ends(folder: Folder) -> None:
    with folder.started("run", folder.playbook(busy(folder)), "--json") as process:
        until((folder.path / "begun").exists, "the step")
        assert folder.call("cancel", "last").code == 0
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert json.loads(out)["status"] == "cancelled"


def test_ctrl_c_cancels_and_tells_so(folder: Folder) -> None:
    with folder.started("run", folder.playbook(busy(folder)), "--json") as process:
        until((folder.path / "begun").exists, "the step")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert json.loads(out)["status"] == "cancelled"
    assert b"cancelling" in err
    assert b"Traceback" not in err


def test_a_second_ctrl_c_kills_where_the_first_cannot_be_done(folder: Folder) -> None:
    with folder.started("run", folder.playbook(busy(folder)), "--json") as process:
        until((folder.path / "begun").exists, "the step")
        with closing(sqlite3.connect(folder.path / ".noetl" / "noetl.db")) as store:
            store.execute("BEGIN IMMEDIATE")  # nothing can be written now: the cancellation waits
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert b"again to kill" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
    assert send(folder, "cancel", "last").status == "cancelled"


def test_one_run_of_a_step_is_cancelled(folder: Folder) -> None:
    workflow = busy(folder) + "\n  next: [{ step: after, when: \"{{ event.name == 'step.failed' }}\" }]"
    workflow += "\n- step: after\n  tool: { kind: noop, result: saved }"
    with folder.started("run", folder.playbook(workflow), "--json") as process:
        until((folder.path / "begun").exists, "the step")
        assert folder.call("cancel", "last", "--run", "busy#1").code == 0
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out)["result"]) == (0, "saved")


def test_a_paused_execution_schedules_nothing_until_it_goes_on(folder: Folder) -> None:
    ran = folder.run(folder.playbook(ASK))
    assert folder.call("pause", ran.id).code == 0
    assert send(folder, "signal", ran.id, "approved", '{"by": "me"}').status == "paused"
    assert [e for e in events(folder) if e["step"] == "say"] == []
    unpaused = send(folder, "unpause", ran.id)
    assert (unpaused.code, unpaused.result) == (0, "by me")


def test_a_sleep_is_waited_for(folder: Folder) -> None:
    ran = folder.run(folder.playbook("- step: nap\n  tool: { kind: sleep, seconds: 0.3 }"))
    assert (ran.code, ran.status) == (0, "completed")
    assert ran.data["duration_ms"] >= 300


def busy(folder: Folder) -> str:
    return f"- step: busy\n  tool: {{ kind: shell, command: 'touch begun; sleep 600', cwd: '{folder.path}' }}"


def events(folder: Folder) -> list[dict[str, object]]:
    return folder.events() if folder.ids() else []


def test_a_cancel_undoes_what_was_done_if_asked(folder: Folder) -> None:
    workflow = "- step: pay\n  tool: { kind: noop, result: 7 }\n  compensate: refund\n  next: ask\n" + ASK
    workflow += '\n- step: refund\n  tool: { kind: noop, result: "{{ pay }}" }'
    ran = folder.run(folder.playbook(workflow))
    cancelled = send(folder, "cancel", ran.id, "--compensate")
    assert (cancelled.code, cancelled.status, cancelled.data["steps"]["refund"]["done"]) == (3, "cancelled", 1)


def test_one_run_is_not_compensated(folder: Folder) -> None:
    ran = folder.run(folder.playbook(ASK))
    refused = folder.call("cancel", ran.id, "--run", "ask#1", "--compensate")
    assert (refused.code, "applies to a whole execution" in refused.err) == (2, True)


def test_the_time_outs_that_run_are_told(folder: Folder) -> None:
    workflow = busy(folder).replace("kind: shell,", "kind: shell, timeout_ms: 300000,") + "\n  spec: { timeout_s: 400 }"
    with folder.started("run", folder.playbook(workflow), "--json") as process:
        until((folder.path / "begun").exists, "the step")

        def told() -> list[str]:
            found = json.loads(folder.call("explain", "last", "--json").out)["standing"][0]["deadlines"]
            return [limit["what"] for limit in found]

        expected = ["the task `busy_task` (`timeout_ms`)", "the step (`timeout_s`)"]
        until(lambda: told() == expected, "the time-out of the task")
        assert "    timeout    " in folder.call("explain", "last").out
        assert folder.call("cancel", "last").code == 0
        process.communicate(timeout=60)


def test_what_is_being_undone_is_not_cancelled_unless_it_is_abandoned(folder: Folder) -> None:
    workflow = """
- { step: book, tool: { kind: noop }, compensate: refund, next: fail }
- { step: fail, tool: { kind: python, code: "raise FatalError('no room')" } }
- { step: refund, tool: { kind: wait, signal: refunded } }
"""
    play = folder.playbook(workflow, policy={"rollback": "on_fail"})
    ran = folder.run(play)
    assert ran.code == 4
    refused = folder.call("cancel", ran.id)
    assert (refused.code, refused.out) == (1, "")
    assert "is rolling back (1 left to compensate)" in refused.err
    assert f"noetl cancel {ran.id} --abandon" in refused.err
    undone = send(folder, "signal", ran.id, "refunded")
    assert (undone.code, undone.status, undone.data["compensated"]) == (1, "failed", True)
    ran = folder.run(play)
    given_up = send(folder, "cancel", ran.id, "--abandon", "--reason", "by hand")
    assert (given_up.code, given_up.status, given_up.data["compensated"]) == (1, "failed", False)
    assert "no room" in given_up.data["error"]["message"]
    [told] = [event for event in folder.events(ran.id) if event["event_type"] == "execution.cancelled"]
    assert (told["payload"]["abandoned"], told["payload"]["reason"]) == (["book#1"], "by hand")
    assert "compensated: false" in folder.call("status", ran.id).out
    assert folder.call("cancel", ran.id, "--abandon", "--compensate").code == 2


def test_a_signal_that_nothing_waits_for_gets_a_warning_and_is_kept(folder: Folder) -> None:
    folder.run(folder.playbook(ASK))
    sent = folder.call("signal", "last", "aproved")
    assert sent.code == 4
    assert "noetl: warning: Playbook `test/play` names no signal `aproved`; it names `approved`." in sent.err
    assert "warning" not in folder.call("signal", "last", "approved", '{"by": "me"}').err
