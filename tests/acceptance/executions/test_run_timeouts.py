"""Time-outs of every level: the work ends, and rules and arcs match the outcome."""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.acceptance.run import Ran
from tests.acceptance.running import PATIENCE_S, Folder, summary
from tests.databases import server_address
from tests.server.cancelling import is_alive

MATCHES = "{{ event.name == 'step.failed' and outcome.error.kind == 'timeout' }}"
SHELL = "{ kind: shell, cmds: ['sleep 600 & echo $$ $! > pids; wait'], cwd: FOLDER MORE }"
LEVELS: dict[str, tuple[str, str, dict[str, str]]] = {  # what the step has, what its task has, the environment
    "task": ("", ", timeout_ms: 8000", {}),
    "task in its spec": ("", ", spec: { timeout: 8 }", {}),
    "every task by configuration": ("", "", {"NOETL_TIMEOUTS_TOOL_DEFAULT_MS": "8000"}),
    "item": ("loop: { in: [1], iterator: i, item_timeout_ms: 8000 }", "", {}),
    "every item by configuration": ("loop: { in: [1], iterator: i }", "", {"NOETL_TIMEOUTS_LOOP_ITEM_MS": "8000"}),
    "loop": ("loop: { in: [1, 2], iterator: i, total_timeout_ms: 8000 }", "", {}),
    "step": ("spec: { timeout_s: 8 }", "", {}),
    "step by its policy": ("spec: { policy: { lifecycle: { timeout_s: 8 } } }", "", {}),
    "step from when it was scheduled": ("spec: { policy: { lifecycle: { deadline_s: 8 } } }", "", {}),
}


def left(folder: Folder) -> list[int]:
    """Return the processes of the task that still run."""
    return [int(pid) for line in folder.lines("pids") for pid in line.split() if is_alive(int(pid))]


def started(folder: Folder, level: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    step, more, environment = LEVELS[level]
    tool = SHELL.replace("FOLDER", json.dumps(str(folder.path))).replace("MORE", more)
    workflow = f'- step: slow\n  {step}\n  tool: {tool}\n  next: [{{ step: saved, when: "{MATCHES}" }}]\n'
    workflow += "- step: saved\n  tool: { kind: noop, result: saved }\n"
    return folder.started("run", folder.playbook(workflow), "--json", **environment)


def test_a_time_out_ends_the_work_and_is_routed(tmp_path: Path) -> None:
    """All at once: the limit is long enough for a task to begin on a busy machine."""
    folders = {level: Folder(tmp_path / str(number)) for number, level in enumerate(LEVELS)}
    with ExitStack() as stack:
        running = {}
        for level, folder in folders.items():
            folder.path.mkdir()
            running[level] = stack.enter_context(started(folder, level))
        for level, process in running.items():
            out, err = process.communicate(timeout=PATIENCE_S)
            ran = summary(Ran(process.returncode, out.decode(), err.decode()))
            assert (ran.code, ran.result) == (0, "saved"), (level, ran.err)
    for level, folder in folders.items():
        assert folder.lines("pids"), level
        assert left(folder) == [], level
        [failed] = folder.events("last", "--type", "step.failed")
        assert failed["payload"]["error"]["kind"] == "timeout", level


def test_a_time_out_of_the_execution_ends_its_work_and_its_children(folder: Folder) -> None:
    tool = SHELL.replace("FOLDER", json.dumps(str(folder.path))).replace("MORE", "")
    folder.playbook(f"- step: slow\n  tool: {tool}\n", "child")
    workflow = "- step: call\n  tool: { kind: playbook, path: child.yaml }\n"
    ran = folder.run(folder.playbook(workflow, executor={"spec": {"timeout_s": 2}}))
    assert (ran.code, ran.status, ran.data["error"]["kind"]) == (1, "failed", "timeout")
    assert folder.lines("pids")
    assert left(folder) == []


def test_a_rule_of_the_task_matches_a_time_out(folder: Folder) -> None:
    rules: list[dict[str, Any]] = [
        {"when": "{{ outcome.error.kind == 'timeout' and _attempt < 2 }}", "then": {"do": "retry", "attempts": 2}},
        {"when": "{{ outcome.error.kind == 'timeout' }}", "then": {"do": "continue", "set_ctx": {"late": True}}},
        {"else": {"then": {"do": "continue"}}},
    ]
    policy = json.dumps({"policy": {"rules": rules}})
    workflow = f"- step: slow\n  tool: {{ kind: shell, command: sleep 600, timeout_ms: 300, spec: {policy} }}\n"
    workflow += '  next: after\n- step: after\n  tool: { kind: noop, result: "{{ ctx.late }}" }\n'
    ran = folder.run(folder.playbook(workflow))
    assert (ran.code, ran.result) == (0, True)
    kinds = [event["payload"]["error"]["kind"] for event in folder.events("last", "--type", "task.attempt.failed")]
    assert kinds == ["timeout", "timeout"]


@pytest.mark.parametrize(("limit", "scheme"), [("connect", "https"), ("read", "http")])
def test_a_request_has_time_outs_for_connecting_and_reading(folder: Folder, limit: str, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing, not even hello
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/"
        spec = f"{{ timeout: {{ {limit}: 0.3 }}, retries: {{ plugin: {{ max_attempts: 1 }} }} }}"
        ran = folder.run(folder.playbook(f"- step: ask\n  tool: {{ kind: http, url: '{url}', spec: {spec} }}\n"))
    assert (ran.code, ran.data["error"]["kind"]) == (1, "timeout"), ran.data["error"]


def test_a_write_has_a_time_out_of_its_own_and_its_query_ends(folder: Folder) -> None:
    address = server_address()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS waits_long (id int PRIMARY KEY)")
        with connection.transaction():
            connection.execute("LOCK TABLE waits_long")
            write = "{ kind: postgres, auth: db, table: waits_long, mode: upsert, key: id, values: { id: 1 } }"
            environment = {
                "NOETL_CREDENTIAL_DB": json.dumps({"dsn": f"{address}?application_name=waits"}),
                "NOETL_TIMEOUTS_SINK_DEFAULT_MS": "400",
                "NOETL_RETRIES_SINK_MAX_ATTEMPTS": "1",
                "NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS": "1",
            }
            file = folder.playbook(f"- step: save\n  tool: {write}\n")
            ran = summary(folder.call("run", file, "--json", **environment))
            assert (ran.code, ran.data["error"]["kind"]) == (1, "timeout"), ran.data["error"]
            asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'waits' AND state = 'active'"
            assert connection.execute(asked).fetchall() == [(0,)]
        connection.execute("DROP TABLE waits_long")
