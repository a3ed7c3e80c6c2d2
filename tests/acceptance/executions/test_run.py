"""`noetl run`: what it runs, what it prints, and how it exits."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.run import noetl
from tests.acceptance.running import Folder

KEYS = {"execution_id", "status", "result", "error", "ctx", "steps", "warnings", "duration_ms"}
ONE_DONE = {"done": 1, "failed": 0, "skipped": 0, "running": 0, "parked": 0}
HELLO = Path(__file__).parents[3] / "examples" / "hello.yaml"


def test_a_playbook_runs_and_its_result_is_all_that_stdout_holds(folder: Folder) -> None:
    ran = folder.call("run", str(HELLO))
    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == {"message": "Hello, world!"}
    assert "✓ greet" in ran.err
    assert "completed" in ran.err
    assert str(Path(".noetl", "noetl.db")) in ran.err


def test_the_last_line_for_programs(folder: Folder) -> None:
    ran = folder.run(str(HELLO), "--set", "who=you")
    assert set(ran.data) == KEYS
    assert ran.code == 0
    assert ran.status == "completed"
    assert ran.result == {"message": "Hello, you!"}
    assert ran.data["error"] is None
    assert ran.data["steps"] == dict.fromkeys(("greet", "say"), ONE_DONE)
    assert ran.data["duration_ms"] >= 0
    assert ran.data["execution_id"].isdecimal()


def test_a_failed_step_fails_the_run(folder: Folder) -> None:
    file = folder.playbook("- step: bad\n  tool: { kind: python, code: 'raise ValueError(41 + 1)' }")
    ran = folder.run(file)
    assert ran.code == 1
    assert ran.status == "failed"
    assert ran.data["error"]["kind"] == "python"
    assert "42" in ran.data["error"]["message"]
    assert ran.data["steps"]["bad"]["failed"] == 1
    shown = folder.call("run", file)
    assert shown.code == 1
    assert "ValueError: 42" in shown.err
    assert "Traceback" not in shown.err


def test_a_loop_that_partly_fails_is_partial(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: each
          loop:
            in: [1, 0, 2]
            iterator: n
            spec: { mode: parallel, policy: { failure: { mode: best_effort } } }
          tool: { kind: python, args: { n: "{{ iter.n }}" }, code: "result = 2 / n" }
        """
    )
    ran = folder.run(file)
    assert (ran.code, ran.status) == (5, "partial")
    assert ran.result["results"] == [2.0, None, 1.0]
    assert ran.result["stats"] == {"total": 3, "succeeded": 2, "failed": 1, "skipped": 0}


def test_ctx_is_told(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: add
          tool: { kind: noop, result: { n: 5 } }
          set: { ctx.n: "{{ outcome.result.n + 1 }}" }
        """
    )
    assert folder.run(file).data["ctx"] == {"n": 6}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("--set", "a=1", "--set", "b=text", "--set", "deep.er=[1, 2]"),
            {"a": 1, "b": "text", "deep": {"er": [1, 2], "x": 0}},
        ),
        (("--payload", '{"a": 1, "deep": {"x": 3}}'), {"a": 1, "b": None, "deep": {"x": 3}}),
        (("--payload", "@given.json", "--set", "a=9"), {"a": 9, "b": "file", "deep": {"x": 0}}),
    ],
)
def test_values_of_the_workload(folder: Folder, arguments: tuple[str, ...], expected: object) -> None:
    (folder.path / "given.json").write_text('{"b": "file", "a": 2}')
    workload = {"a": 0, "b": None, "deep": {"x": 0}}
    file = folder.playbook("- step: show\n  tool: { kind: noop, result: '{{ workload }}' }", workload=workload)
    assert folder.run(file, *arguments).result == expected


def test_one_step_alone(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: first
          tool: { kind: python, code: "raise ValueError()" }
          next: [{ step: second }]
        - step: second
          tool: { kind: noop, result: "{{ workload.n }}" }
          next: [{ step: third }]
        - step: third
          tool: { kind: python, code: "raise ValueError()" }
        """,
        workload={"n": 7},
    )
    ran = folder.run(file, "--step", "second")
    assert (ran.status, ran.result, list(ran.data["steps"])) == ("completed", 7, ["second"])
    unknown = folder.call("run", file, "--step", "fourth")
    assert unknown.code == 2
    assert "first, second, third" in unknown.err


def test_the_store_is_where_it_is_wanted(folder: Folder) -> None:
    assert folder.call("run", str(HELLO), "--store", "other.db").code == 0
    assert (folder.path / "other.db").is_file()
    assert not (folder.path / ".noetl").exists()
    home = folder.path / "home"
    assert folder.call("run", str(HELLO), NOETL_HOME=str(home)).code == 0
    assert (home / "noetl.db").is_file()
    assert len(folder.call("runs", "--json", "--store", str(home / "noetl.db")).out.splitlines()) == 1


def test_a_store_that_is_no_store(folder: Folder) -> None:
    (folder.path / "notes.txt").write_text("not a store, and left as it is" * 100)
    ran = folder.call("run", str(HELLO), "--store", "notes.txt")
    assert ran.code != 0
    assert "notes.txt" in ran.err
    assert "Traceback" not in ran.err
    assert [path.name for path in folder.path.iterdir()] == ["notes.txt"]


def test_a_playbook_from_stdin(folder: Folder) -> None:
    ran = noetl("run", "-", "--json", cwd=folder.path, stdin=HELLO.read_bytes())
    assert ran.code == 0
    assert json.loads(ran.out)["status"] == "completed"


class TestInvalidInput:
    """Invalid input is reported with exit code 2, and nothing is written."""

    def refused(self, folder: Folder, *arguments: str) -> str:
        ran = folder.call("run", *arguments)
        assert ran.code == 2, ran.err
        assert ran.out == ""
        assert "Traceback" not in ran.err
        assert folder.ids() == []
        return ran.err

    def test_a_file_that_is_not_there(self, folder: Folder) -> None:
        assert "nowhere.yaml: no such file" in self.refused(folder, "nowhere.yaml")

    def test_a_playbook_with_errors_is_reported_as_by_validate(self, folder: Folder) -> None:
        file = folder.playbook("- step: a\n  tool: { kind: pyton, code: 'x' }")
        said = self.refused(folder, file)
        assert "play.yaml:" in said
        assert "pyton" in said
        assert "fix:" in said

    def test_a_payload_that_is_no_json(self, folder: Folder) -> None:
        assert "not JSON" in self.refused(folder, str(HELLO), "--payload", "{who: me}")

    def test_a_payload_that_is_no_object(self, folder: Folder) -> None:
        assert "JSON object" in self.refused(folder, str(HELLO), "--payload", "[1]")

    def test_a_value_without_a_key(self, folder: Folder) -> None:
        assert "key=value" in self.refused(folder, str(HELLO), "--set", "who")

    def test_a_payload_that_violates_the_schema(self, folder: Folder) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
        file = folder.playbook(
            "- step: a\n  tool: { kind: noop }", workload={"n": 1}, executor={"spec": {"workload_schema": schema}}
        )
        said = self.refused(folder, file, "--set", "n=0")
        assert "workload.n" in said
        assert "minimum" in said

    def test_a_playbook_that_uses_what_cannot_be_run_here(self, folder: Folder) -> None:
        snowflake = folder.playbook("- step: a\n  tool: { kind: snowflake, auth: s, query: SELECT 1 }")
        assert "step 'a' needs the kind `snowflake`, which cannot be used here" in self.refused(folder, snowflake)
        store = {"result": {"store": {"kind": "s3", "compression": "zstd"}}}
        stored = folder.playbook("- step: a\n  tool: { kind: noop }", executor={"spec": store})
        assert "`executor` needs the store `s3`" in self.refused(folder, stored)

    def test_a_playbook_that_requires_a_kind_that_cannot_be_run_here(self, folder: Folder) -> None:
        workflow = "- step: a\n  tool: { kind: noop }"
        file = folder.playbook(workflow, executor={"requires": {"tools": ["noop", "sleep", "workbook", "teleport"]}})
        assert "requires the tool kinds `teleport`" in self.refused(folder, file)

    def test_a_store_that_cannot_be_made(self, folder: Folder) -> None:
        (folder.path / "file").write_text("no folder")
        assert "Cannot create the folder" in self.refused(folder, str(HELLO), "--store", "file/noetl.db")

    def test_a_wait_that_is_no_number(self, folder: Folder) -> None:
        assert "seconds" in self.refused(folder, str(HELLO), "--wait=soon")


def test_an_undefined_name_in_a_tool_input_names_the_nearest(folder: Folder) -> None:
    file = folder.playbook(
        "- step: a\n  tool: { kind: noop, result: '{{ workload.custmer }}' }", workload={"customer": 1}
    )
    ran = folder.call("run", file)
    assert ran.code != 0
    assert "customer" in ran.err


def test_a_result_that_is_not_json_is_an_error_of_kind_schema(folder: Folder) -> None:
    file = folder.playbook("- step: a\n  tool: { kind: python, code: 'result = object()' }")
    assert folder.run(file).data["error"]["kind"] == "schema"


def test_a_loop_over_what_is_no_list(folder: Folder) -> None:
    file = folder.playbook(
        "- step: a\n  loop: { in: '{{ workload.n }}', iterator: x }\n  tool: { kind: noop }", workload={"n": 5}
    )
    ran = folder.run(file)
    assert ran.code == 1
    assert "a list is needed" in ran.data["error"]["message"]


def test_a_credential_comes_from_the_environment_and_its_absence_is_told(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: a
          tool:
            kind: http
            url: http://127.0.0.1:1/
            auth: my-api
            spec: { policy: { rules: [{ else: { then: { do: fail } } }] } }
        """
    )
    ran = folder.call("run", file)
    assert ran.code == 2
    assert "unknown credential 'my-api', which step `a` needs" in ran.err
    assert "nothing was run" in ran.err
    assert "NOETL_CREDENTIAL_" in ran.err
    nobody = folder.call("run", file, "--json", NOETL_CREDENTIAL_MY_API="s3cret")
    assert json.loads(nobody.out)["error"]["kind"] == "connection"
    assert "s3cret" not in nobody.out + folder.call("events", "last", "--json").out


def test_the_keychain_is_seen_by_tasks_and_by_nobody_else(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: a
          tool: { kind: python, args: { t: "{{ keychain.api.token }}" }, code: "result = len(t)" }
        """,
        keychain=[{"name": "api", "kind": "bearer"}],
    )
    ran = folder.call("run", file, "--json", NOETL_CREDENTIAL_API="s3cret-token")
    assert json.loads(ran.out)["result"] == 12
    assert "s3cret" not in folder.call("events", "last", "--json").out
    assert b"s3cret" not in b"".join(
        path.read_bytes() for path in (folder.path / ".noetl").glob("noetl.db*") if path.is_file()
    )


def test_a_playbook_that_changed_between_runs_runs_as_it_is(folder: Folder) -> None:
    for word in ("one", "two"):
        file = folder.playbook(f"- step: a\n  tool: {{ kind: noop, result: {word} }}")
        assert folder.run(file).result == word
    assert len(folder.ids()) == 2


def test_many_processes_share_a_store(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: each
          loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel } }
          tool: { kind: noop, result: "{{ iter.n }}" }
          next: [{ step: nap }]
        - step: nap
          tool: { kind: sleep, seconds: 0.1 }
          next: [{ step: end }]
        - step: end
          tool: { kind: noop, result: "{{ each.results }}" }
        """
    )
    with ExitStack() as running:
        processes = [running.enter_context(folder.started("run", file, "--json")) for _ in range(4)]
        printed = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, printed
    assert [json.loads(out)["result"] for out, _ in printed] == [[1, 2, 3]] * 4
    assert len(set(folder.ids())) == 4
