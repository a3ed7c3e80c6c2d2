"""Looking at executions: `runs`, `status`, `events`, `logs`, `replay`, `explain`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.running import Folder, until
from tests.tools.web import Web

ENVELOPE = {
    "event_id", "execution_id", "seq", "event_type", "timestamp", "source", "entity_type", "entity_id", "parent_id",
    "step_run_id", "task_run_id", "iteration", "attempt", "status", "duration_ms", "payload", "version", "step",
}  # fmt: skip
PLAY = """
- step: first
  tool:
    kind: python
    args: { n: "{{ workload.n }}" }
    code: |
      print("n is", n)
      result = {"n": n}
  set: { ctx.n: "{{ outcome.result.n }}" }
  next:
    - { step: big, when: "{{ ctx.n > 10 }}" }
    - { step: small }
- step: big
  tool: { kind: noop }
- step: small
  tool: { kind: noop, result: small }
"""
WAITS = """
- step: ask
  tool: { kind: wait, signal: approved }
"""


def test_runs_lists_the_newest_first(folder: Folder) -> None:
    file = folder.playbook(PLAY, workload={"n": 1})
    ids = [folder.run(file).id for _ in range(3)]
    ran = folder.call("runs")
    assert [line.split()[0] for line in ran.out.splitlines()] == ids[::-1]
    rows = [json.loads(line) for line in folder.call("runs", "--json", "--limit", "2").out.splitlines()]
    assert [row["execution_id"] for row in rows] == ids[:0:-1]
    assert {row["status"] for row in rows} == {"completed"}
    assert folder.call("runs", "--status", "failed").out.strip() == "no executions"


def test_runs_are_chosen_by_path_and_by_words(folder: Folder) -> None:
    done = folder.run(folder.playbook(PLAY, workload={"n": 1}))
    path = json.loads(folder.call("runs", "--json").out)["path"]
    for given in (("--path", path), ("--search", path[1:]), ("--search", done.id[2:])):
        assert json.loads(folder.call("runs", "--json", *given).out)["execution_id"] == done.id
    for given in (("--path", path[1:]), ("--search", "nothing like it"), ("--tag", "none")):
        assert folder.call("runs", *given).out.strip() == "no executions"


def test_runs_that_wait_are_found_as_such(folder: Folder) -> None:
    folder.run(folder.playbook(PLAY, workload={"n": 1}))
    waiting = folder.run(folder.playbook(WAITS))
    rows = [json.loads(line) for line in folder.call("runs", "--json", "--status", "waiting").out.splitlines()]
    assert [(row["execution_id"], row["status"]) for row in rows] == [(waiting.id, "waiting")]
    assert folder.call("runs", "--status", "running").out.strip() == "no executions"


def test_status_tells_of_steps_and_of_what_is_waited_for(folder: Folder) -> None:
    folder.run(folder.playbook(PLAY, workload={"n": 1}))
    ran = folder.call("status", "last")
    assert "completed" in ran.out
    assert "small: 1 done" in ran.out
    waiting = folder.run(folder.playbook(WAITS))
    assert "the signal `approved`" in folder.call("status", waiting.id).out
    data = json.loads(folder.call("status", waiting.id, "--json").out)
    assert (data["status"], data["driven_by"]) == ("waiting", None)


def test_events_are_the_envelope_and_the_step(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"n": 1}))
    found = folder.events(ran.id)
    assert all(set(event) == ENVELOPE for event in found)
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    assert {event["execution_id"] for event in found} == {ran.id}
    assert [e["step"] for e in found if e["event_type"] == "step.done"] == ["first", "small"]
    assert found[0]["event_type"] == "playbook.execution.requested"
    assert {e["event_type"] for e in found[-2:]} == {"playbook.finished", "playbook.processed"}


@pytest.mark.parametrize("name", ["step.done", "StepDone", "call.done"])
def test_events_of_a_type_by_any_of_its_names(folder: Folder, name: str) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"n": 1}))
    assert [event["event_type"] for event in folder.events(ran.id, "--type", name)] == ["step.done"] * 2


def test_events_of_a_family_and_of_an_unknown_type(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"n": 1}))
    found = {event["event_type"] for event in folder.events(ran.id, "--type", "token.*", "--type", "ctx.patched")}
    assert found == {"token.created", "ctx.patched"}
    refused = folder.call("events", ran.id, "--type", "step.don")
    assert refused.code == 2
    assert "step.done" in refused.err


def test_following_ends_with_the_execution(folder: Folder) -> None:
    with folder.started("run", folder.playbook(WAITS), "--wait"):
        until(lambda: bool(folder.ids()), "the start")
        with folder.started("events", "last", "--follow", "--json") as following:
            folder.call("signal", "last", "approved")
            out, _ = following.communicate(timeout=60)
    assert json.loads(out.splitlines()[-1])["event_type"] == "playbook.processed"


def test_logs_hold_what_tasks_print(folder: Folder) -> None:
    folder.run(folder.playbook(PLAY, workload={"n": 5}))
    assert "first first_task: n is 5" in folder.call("logs", "last").out
    (line,) = folder.call("logs", "last", "--json").out.splitlines()
    assert json.loads(line)["text"] == "n is 5"
    assert folder.call("logs", "last", "--step", "small").out == ""


def test_replay_shows_the_state_at_any_event(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"n": 5}))
    seq = next(e["seq"] for e in folder.events(ran.id) if e["event_type"] == "ctx.patched")
    before = json.loads(folder.call("replay", ran.id, "--to", str(seq - 1), "--json").out)
    after = json.loads(folder.call("replay", ran.id, "--to", str(seq), "--json").out)
    assert (before["ctx"], after["ctx"]) == ({}, {"n": 5})
    assert after["status"] == "running"
    end = json.loads(folder.call("replay", ran.id, "--json").out)
    assert (end["status"], end["result"]) == ("completed", "small")
    assert end["checksum"] != after["checksum"]


def test_replay_shows_what_changed(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"n": 5}))
    seq = next(e["seq"] for e in folder.events(ran.id) if e["event_type"] == "ctx.patched")
    arguments = ("replay", ran.id, "--to", str(seq), "--diff", str(seq - 1))
    assert "ctx.n: nothing → 5" in folder.call(*arguments).out
    changes = json.loads(folder.call(*arguments, "--json").out)["changes"]
    assert {"path": "ctx.n", "after": 5} in changes
    refused = folder.call("replay", ran.id, "--to", "9999")
    assert refused.code == 2
    assert "there is no event 9999" in refused.err


def test_explain_tells_the_way_with_the_values_that_decided(folder: Folder) -> None:
    ran = folder.run(folder.playbook(PLAY, workload={"n": 5}))
    said = folder.call("explain", ran.id).out
    assert "completed" in said
    assert "→ big: {{ ctx.n > 10 }} does not hold (ctx.n = 5)" in said
    assert "→ small: no condition, so taken on success" in said


def test_explain_tells_what_a_token_waits_for(folder: Folder) -> None:
    ran = folder.run(folder.playbook(WAITS))
    said = folder.call("explain", ran.id).out
    assert "waits for  the signal `approved`" in said
    assert f"noetl signal {ran.id} approved" in said
    data = json.loads(folder.call("explain", ran.id, "--json").out)
    (standing,) = data["standing"]
    assert (standing["step"], standing["until"]) == ("ask", None)
    assert standing["since"] > 0


def test_what_helps_against_a_failure_names_the_execution(folder: Folder) -> None:
    fails = "- step: slow\n  tool: {kind: shell, cmds: ['sleep 9'], timeout_ms: 50}\n"
    ran = folder.run(folder.playbook(fails))
    fix = f"find out what takes so long: `noetl logs {ran.id}`."
    for command in ("status", "explain", "logs"):
        assert fix in folder.call(command, ran.id).out
    failure = json.loads(folder.call("explain", ran.id, "--json").out)["failure"]
    assert (failure["step"], failure["error"]["kind"]) == ("slow", "timeout")
    assert failure["fix"].endswith(fix)


@pytest.mark.parametrize(
    "name", ["status", "events", "logs", "explain", "resume", "replay", "cancel", "pause", "unpause"]
)
def test_an_execution_that_is_not_there(folder: Folder, name: str) -> None:
    nowhere = folder.call(name, "123456789012345678")
    assert nowhere.code == 2
    assert "No store at" in nowhere.err
    folder.run(folder.playbook(PLAY, workload={"n": 1}))
    ran = folder.call(name, "123456789012345678")
    assert ran.code == 2
    assert "No execution 123456789012345678" in ran.err
    assert "Traceback" not in ran.err


def test_what_a_run_passed_over_is_shown_everywhere(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: look
          tool: { kind: noop }
          next: [{ step: never, when: "{{ 1 / 0 }}" }, { step: end }]
        - { step: never, tool: { kind: noop } }
        - { step: end, tool: { kind: noop } }
        """
    )
    ran = folder.call("run", file)
    told = "look: The condition of the arc to `never` cannot be evaluated, so it counts as false"
    assert ran.code == 0
    assert f"⚠ {told}" in ran.err
    assert f"⚠ {told}" in folder.call("status", "last").out
    assert f"⚠ {told}" in folder.call("explain", "last").out
    for command in ("status", "explain"):
        [warning] = json.loads(folder.call(command, "last", "--json").out)["warnings"]
        assert warning["step"] == "look"
    [warning] = folder.run(file).data["warnings"]
    assert warning["step"] == "look"


def test_a_bare_step_is_a_leaf_and_sql_may_be_a_value(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: ask
          tool: { kind: duckdb, query: "{{ workload.sql }}" }
          set: { ctx.n: "{{ ask.rows[0].n }}" }
          next: [{ step: end }]
        - step: end
        """,
        workload={"sql": "SELECT 41 + 1 AS n"},
    )
    ran = folder.run(file)
    assert (ran.status, ran.data["ctx"]) == ("completed", {"n": 42})
    checked = folder.call("validate", file)
    assert checked.code == 0
    assert "warning[NOE507]" in checked.out + checked.err
    assert "hint[NOE116]" in checked.out + checked.err


def test_a_branch_that_ends_on_a_mistake_fails(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: look
          tool: { kind: noop }
          next: [{ step: end, when: "{{ 1 / 0 }}" }]
        - { step: end, tool: { kind: noop } }
        """
    )
    ran = folder.call("run", file)
    assert ran.code == 1
    assert "the condition of the arc from `look` to `end` cannot be evaluated, and no arc is taken" in ran.err


def test_a_failed_run_prints_no_result(folder: Folder) -> None:
    file = folder.playbook(
        """
        - { step: load, tool: { kind: noop, result: { n: 1 } }, next: [{ step: check }] }
        - { step: check, tool: { kind: shell, command: "exit 3" } }
        """
    )
    ran = folder.call("run", file)
    assert (ran.code, ran.out) == (1, "")
    assert "exit 3" in ran.err or "exit code 3" in ran.err


def test_a_level_that_does_not_exist_is_refused(folder: Folder) -> None:
    ran = folder.call("runs", NOETL_LOG_LEVEL="verbos")
    assert (ran.code, ran.err) == (
        2,
        "noetl: NOETL_LOG_LEVEL is `verbos`, which is no level. Use debug, info, warning or error.\n",
    )


def test_a_variable_that_is_no_setting_gets_a_warning(folder: Folder) -> None:
    ran = folder.call("runs", NOETL_DB_ULR="postgresql://a/b", NOETL_LIMITS_MAX_ITEMS="9", NOETL_CREDENTIAL_X="y")
    warnings = [line for line in ran.err.splitlines() if "warning" in line]
    assert warnings == [
        "noetl: warning: the environment variable NOETL_DB_ULR is no setting. Did you mean 'NOETL_DB_URL'?"
    ]


WORKLOAD = {"zip": "01067", "n": 5, "on": True, "names": ["a"], "deep": {"inner": 1}, "free": None}


@pytest.mark.parametrize(
    ("given", "workload"),
    [
        ("zip=99", {"zip": "99"}),
        ("zip=1.10", {"zip": "1.10"}),
        ('zip="7"', {"zip": "7"}),
        ("n=6", {"n": 6}),
        ("n=null", {"n": None}),
        ("on=false", {"on": False}),
        ('names=["b"]', {"names": ["b"]}),
        ("deep.inner=2", {"deep": {"inner": 2}}),
        ("free=1.10", {"free": 1.1}),
    ],
)
def test_a_value_takes_the_type_of_its_default(folder: Folder, given: str, workload: dict[str, Any]) -> None:
    file = folder.playbook('- { step: say, tool: { kind: noop, result: "{{ workload }}" } }', workload=WORKLOAD)
    ran = folder.call("run", file, "--set", given)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == WORKLOAD | workload
    assert "warning" not in ran.err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("n=many", "`--set n=many` must be a number, like the default 5."),
        ("on=1", "`--set on=1` must be true or false, like the default true."),
        ("n=true", "must be a number"),
        ("names=b", "must be a JSON list"),
        ("deep=1", "must be a JSON object"),
    ],
)
def test_a_value_of_another_type_is_refused(folder: Folder, given: str, told: str) -> None:
    file = folder.playbook("- { step: say, tool: { kind: noop } }", workload=WORKLOAD)
    ran = folder.call("run", file, "--set", given)
    assert (ran.code, told in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("zipp=1", "`workload` has no key `zipp`. Did you mean 'zip'?"),
        ("deep.kay=1", "`workload.deep` has no key `kay`."),
    ],
)
def test_a_key_that_the_workload_lacks_gets_a_warning(folder: Folder, given: str, told: str) -> None:
    file = folder.playbook("- { step: say, tool: { kind: noop } }", workload=WORKLOAD)
    ran = folder.call("run", file, "--set", given)
    assert ran.code == 0
    assert f"noetl: warning: {told}" in ran.err


def test_a_key_of_the_schema_gets_no_warning(folder: Folder) -> None:
    executor = {"spec": {"workload_schema": {"properties": {"region": {"type": "string"}}}}}
    file = folder.playbook("- { step: say, tool: { kind: noop } }", workload=WORKLOAD, executor=executor)
    ran = folder.call("run", file, "--set", "region=eu")
    assert (ran.code, "warning" in ran.err) == (0, False), ran.err


def test_a_cookie_of_a_response_is_masked_in_the_log_and_readable_in_its_pipeline(folder: Folder, web: Web) -> None:
    web.headers["/login"] = {"Set-Cookie": "sid=0123456789abcdef; Path=/"}
    file = folder.playbook(
        f"""
- step: a
  tool:
    - login: {{ kind: http, url: "{web.url}/login" }}
    - use: {{ kind: http, url: "{web.url}/json", headers: {{ Cookie: "{{{{ login.headers['set-cookie'].split(';')[0] }}}}" }} }}
  next: b
- {{ step: b, tool: {{ kind: noop, result: "{{{{ a.login.headers['set-cookie'] }}}}" }} }}
"""
    )
    assert folder.run(file).code == 0
    assert web.asked[1].headers["cookie"] == "sid=0123456789abcdef"
    log = json.dumps(folder.events("last"))
    assert "0123456789abcdef" not in log
    assert "(masked secret)" in log
