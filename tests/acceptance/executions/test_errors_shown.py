"""What a failed step shows: a sentence, the request or the line, and no secret."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.acceptance.run import Ran
from tests.acceptance.running import Folder
from tests.server.serving import process
from tests.tools.web import Web

BROKEN = """
- step: load
  tool:
    - name: read
      kind: python
      args: { text: "{{ workload.text }}" }
      code: |
        import json

        def parsed(text):
            return json.loads(text)

        result = parsed(text)
"""
FAILING_LINE = 15  # of the file: five lines stand above the steps
CALLING_LINE = 17


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    yield made
    made.close()


def shown(folder: Folder, ran: Ran) -> dict[str, str]:
    """Return what `run`, `status`, `explain` and `logs` say of a failed execution."""
    assert ran.code == 1, ran.err
    found = {name: folder.call(name, "last") for name in ("status", "explain", "logs")}
    assert {name: one.code for name, one in found.items()} == dict.fromkeys(found, 0)
    return {"run": ran.err, **{name: one.out for name, one in found.items()}}


def test_a_python_error_names_the_line_of_the_playbook_file(folder: Folder) -> None:
    file = folder.playbook(BROKEN, workload={"text": "{bad"})
    lines = (folder.path / file).read_text().splitlines()
    assert "json.loads" in lines[FAILING_LINE - 1]
    assert "result = parsed" in lines[CALLING_LINE - 1]
    said = shown(folder, folder.call("run", file))
    place = {"run": "play.yaml", "status": "test/play", "explain": "test/play", "logs": "test/play"}
    for command, text in said.items():
        assert "JSONDecodeError: Expecting property name" in text, command
        assert f"{place[command]}:{FAILING_LINE}: return json.loads(text)" in text, (command, text)
    for command in ("run", "explain", "logs"):
        assert f"{place[command]}:{CALLING_LINE}, in <module>: result = parsed(text)" in said[command]
        assert "decoder.py:" in said[command]
    for command in ("run", "status", "explain"):
        assert "Step `load` failed: JSONDecodeError: " in said[command]


def test_the_line_in_the_file_is_in_the_json_too(folder: Folder) -> None:
    file = folder.playbook(BROKEN, workload={"text": "{bad"})
    ran = folder.run(file)
    where = ran.data["error"]["where"]
    assert (where["line"], where["playbook"], where["playbook_line"]) == (4, "test/play", FAILING_LINE)
    assert where["source"] == "return json.loads(text)"
    for command in ("status", "explain"):
        told = json.loads(folder.call(command, "last", "--json").out)
        assert told["error"] == ran.data["error"]
    errors = [json.loads(line) for line in folder.call("logs", "last", "--json").out.splitlines()]
    assert [(one["level"], one["task"]) for one in errors] == [("error", "read")] * len(errors) != []


def test_the_line_is_that_of_the_version_that_ran(folder: Folder) -> None:
    file = folder.playbook(BROKEN, workload={"text": "{bad"})
    folder.run(file)
    first = folder.ids()[0]
    text = (folder.path / file).read_text()
    (folder.path / file).write_text("# a comment\n# and another\n" + text)
    assert f"play.yaml:{FAILING_LINE + 2}: return" in folder.call("run", file).err
    assert f"test/play:{FAILING_LINE}: return" in folder.call("status", first).out
    assert f"test/play:{FAILING_LINE + 2}: return" in folder.call("status", "last").out


def test_an_error_in_a_script_names_the_line_of_the_script(folder: Folder) -> None:
    (folder.path / "clean.py").write_text("# a script\n\ndef main(rows):\n    return rows[0] / 0\n")
    file = folder.playbook("- step: clean\n  tool: { kind: python, script: { uri: ./clean.py }, input: { rows: [1] } }")
    for command, text in shown(folder, folder.call("run", file)).items():
        assert "ZeroDivisionError: division by zero" in text, command
        assert "./clean.py:4: return rows[0] / 0" in text, command


def test_code_of_the_workbook_is_found_where_it_stands(folder: Folder) -> None:
    file = folder.playbook("- step: a\n  tool: { kind: workbook, name: halve }")
    path = folder.path / file
    path.write_text(path.read_text() + "workbook:\n- name: halve\n  kind: python\n  code: |\n    x = 1\n    x / 0\n")
    ran = folder.call("run", file)
    assert "Step `a` failed: ZeroDivisionError: division by zero\n  play.yaml:12: x / 0\n" in ran.err


def test_a_failed_item_names_its_line(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: each
          loop: { in: [2, 1, 0], iterator: n }
          tool:
            kind: python
            args: { n: "{{ iter.n }}" }
            code: |
              result = 6 // n
        """
    )
    said = shown(folder, folder.call("run", file))
    for command in ("run", "status", "explain"):
        assert "Step `each` failed: item 2 of the loop failed: ZeroDivisionError: " in said[command]
        assert ":11: result = 6 // n" in said[command]
    assert "each[2]" in said["logs"]
    assert ":11: result = 6 // n" in said["logs"]


def test_a_refused_request_shows_method_url_and_body(folder: Folder, web: Web) -> None:
    call = f"- step: fetch\n  tool: {{ kind: http, method: PUT, url: '{web.url}/status/404?page=2' }}"
    said = shown(folder, folder.call("run", folder.playbook(call)))
    for command in ("run", "status", "explain"):
        assert f"Step `fetch` failed: PUT {web.url}/status/404 responded with 404 Not Found" in said[command]
        assert '  {"why": "asked"}' in said[command].splitlines(), said[command]
    error = folder.run("play.yaml").data["error"]
    assert error["details"] == {
        "method": "PUT",
        "url": f"{web.url}/status/404?page=2",
        "status": 404,
        "body": '{"why": "asked"}',
    }


def test_a_request_that_reaches_no_server_names_its_url(folder: Folder) -> None:
    policy = "spec: { policy: { rules: [{ else: { then: { do: fail } } }] } }"
    for host, reason in (
        ("127.0.0.1:1", "Connection refused"),
        ("no-such-host.invalid", "cannot resolve the host name"),
    ):
        call = (
            f"- step: fetch\n  tool: {{ kind: http, url: 'http://ada:hush-hush@{host}/x?token=abcdefghij', {policy} }}"
        )
        said = shown(folder, folder.call("run", folder.playbook(call)))
        for command in ("run", "status", "explain"):
            assert f"Step `fetch` failed: GET http://{host}/x failed: " in said[command]
            assert reason in said[command]
        everything = "".join(said.values()) + folder.call("events", "last", "--json").out
        assert "abcdefghij" not in everything
        assert "hush-hush" not in everything


def test_no_secret_of_a_line_is_shown(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: load
          tool:
            kind: python
            code: |
              connect = dict
              raise ValueError(connect(password="hunter2hunter2"))
        """
    )
    said = shown(folder, folder.call("run", file))
    assert not [command for command, text in said.items() if "hunter2" in text]


def test_too_much_memory_names_the_limit_and_its_setting(folder: Folder) -> None:
    file = folder.playbook("- step: big\n  tool: { kind: python, code: 'x = bytearray(900 << 20)' }")
    ran = folder.call("run", file, NOETL_TASK_MEMORY_MB="300")
    assert ran.code == 1
    assert "Step `big` failed: MemoryError: the task needs more memory than its limit of 300 MiB" in ran.err
    assert "NOETL_TASK_MEMORY_MB" in ran.err
    assert folder.call("run", file).code == 0


def test_a_failed_command_shows_the_end_of_its_output(folder: Folder) -> None:
    call = "- step: pack\n  tool: { kind: shell, command: 'echo first >&2; echo second >&2; exit 3' }"
    said = shown(folder, folder.call("run", folder.playbook(call)))
    for command in ("run", "status", "explain"):
        assert "Step `pack` failed: the command failed with exit code 3: second\n  first\n  second\n" in said[command]


def test_a_server_shows_the_same(folder: Folder) -> None:
    folder.playbook(BROKEN, workload={"text": "{bad"})
    with process(folder.path, "up", auth="auto") as (url, _):
        assert folder.call("register", "play.yaml", "--server", url).code == 0
        ran = folder.call("exec", "test/play", "--follow", "--server", url)
        said = {name: folder.call(name, "last", "--server", url).out for name in ("status", "explain", "logs")}
    assert ran.code == 1
    for command, text in {"exec": ran.err, **said}.items():
        assert f"test/play:{FAILING_LINE}: return json.loads(text)" in text, (command, text)
