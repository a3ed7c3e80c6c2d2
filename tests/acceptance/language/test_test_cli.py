"""`noetl test` as people call it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.acceptance.running import Folder

WORKFLOW = """
- step: fetch
  tool: { kind: http, url: "http://127.0.0.1:9/" }
  next:
    arcs:
      - { step: small, when: "{{ fetch.n < 10 }}" }
      - { step: large, when: "{{ fetch.n >= 10 }}" }
- { step: small, tool: { kind: noop, result: small } }
- { step: large, tool: { kind: noop, result: large } }
"""
TESTS = """\
tests:
  - name: a small one
    mocks: { fetch: { ok: { n: 3 } } }
    expect: { status: completed, result: small }
  - name: a large one
    mocks: { fetch: { ok: { n: 30 } } }
    expect: { result: large }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.playbook(WORKFLOW)
    (tmp_path / "play.test.yaml").write_text(TESTS, encoding="utf-8")
    return made


def test_good_tests_pass_and_leave_nothing_behind(folder: Folder) -> None:
    for place in (".", "play.test.yaml", "play.yaml"):
        ran = folder.call("test", place)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == "play.test.yaml\n  ✓ a small one\n  ✓ a large one\n2 tests: 2 passed\n"
    assert sorted(path.name for path in folder.path.iterdir()) == ["play.test.yaml", "play.yaml"]


def test_a_difference_is_shown_in_its_place(folder: Folder) -> None:
    path = folder.path / "play.test.yaml"
    path.write_text(TESTS.replace("result: large", "result: huge"), encoding="utf-8")
    ran = folder.call("test", "play.test.yaml")
    assert (ran.code, ran.err) == (1, "")
    assert "  ✗ a large one\n    play.test.yaml:7:23: result\n      7 |     expect: { result: huge }\n" in ran.out
    assert '      expected: "huge"\n      found:    "large"\n' in ran.out
    assert ran.out.endswith("2 tests: 1 passed, 1 failed\n")


def test_a_bad_file_is_told_with_its_place_and_nothing_is_played(folder: Folder) -> None:
    path = folder.path / "play.test.yaml"
    path.write_text(TESTS.replace("mocks: { fetch", "mocks: { fetsh"), encoding="utf-8")
    ran = folder.call("test", "play.test.yaml")
    assert ran.code == 2
    assert "play.test.yaml:3:14: error Unknown step or task `fetsh`. Did you mean `fetch`?" in ran.out
    assert "    | " in ran.out
    assert "✓" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.test.yaml",), "noetl: nowhere.test.yaml: no such file; check the path"),
        (("other.yaml",), "noetl: other.yaml: no other.test.yaml beside this playbook"),
        (("empty",), "noetl: empty: no test files (*.test.yaml) in this folder"),
        ((".", "-k", "nothing like it"), "noetl: no tests matching `nothing like it` in ."),
        ((".", "--saga"), "noetl: no sagas in ."),
        ((".", "--junit", "no/such/folder.xml"), "noetl: Cannot write no/such/folder.xml"),
    ],
)
def test_what_cannot_be_used_is_told(folder: Folder, arguments: tuple[str, ...], said: str) -> None:
    (folder.path / "other.yaml").write_text((folder.path / "play.yaml").read_text(), encoding="utf-8")
    (folder.path / "empty").mkdir()
    ran = folder.call("test", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_playbook_with_errors_is_told(folder: Folder) -> None:
    folder.playbook("- { step: fetch, tol: 1 }")
    ran = folder.call("test", ".")
    assert ran.code == 2
    assert "The playbook play.yaml has errors; `noetl validate play.yaml` lists them." in ran.out


def test_other_commands_leave_files_of_tests_to_this_one(folder: Folder) -> None:
    assert folder.call("validate", "play.yaml", "play.test.yaml").out == "1 file checked, no problems found.\n"
    for command in ("validate", "fmt"):
        ran = folder.call(command, "play.test.yaml")
        assert (ran.code, "play.test.yaml: this is a test file; run it with `noetl test`" in ran.err) == (2, True)


def test_it_finds_children_also_from_elsewhere(folder: Folder, tmp_path: Path) -> None:
    deep = Folder(tmp_path / "a" / "b")
    deep.path.mkdir(parents=True)
    deep.playbook("- { step: call, tool: { kind: playbook, path: test/child } }")
    deep.playbook("- { step: one, tool: { kind: noop, result: 5 } }", name="child")
    (deep.path / "play.test.yaml").write_text("tests: [{name: one, expect: {result: 5}}]\n", encoding="utf-8")
    (tmp_path / "c").mkdir()
    ran = Folder(tmp_path / "c").call("test", str(deep.path))
    assert ran.code == 0, ran.out


def test_cases_are_chosen_and_coverage_is_demanded(folder: Folder) -> None:
    ran = folder.call("test", ".", "-k", "SMALL", "--cover-min", "90")
    assert ran.code == 1
    assert "  play.yaml: 1 of 2\n    play.yaml:10: no case takes arc fetch → large\n" in ran.out
    assert "noetl: 50.0 % covered, less than 90 %." in ran.err
    assert folder.call("test", ".", "--cover-min", "100").code == 0


def test_reports_for_programs_and_for_ci(folder: Folder) -> None:
    path = folder.path / "play.test.yaml"
    path.write_text(TESTS.replace("result: large", "result: huge"), encoding="utf-8")
    ran = folder.call("test", ".", "--json", "--cover", "--junit", "report.xml")
    told = json.loads(ran.out)
    assert (told["passed"], told["failed"], told["coverage"]["percent"]) == (1, 1, 100.0)
    [failure] = told["files"][0]["cases"][1]["failures"]
    assert (failure["line"], failure["expected"], failure["found"]) == (7, '"huge"', '"large"')
    [suite] = ElementTree.parse(folder.path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert "expected" in (suite[1][0].get("message") or "")


def test_a_tool_may_really_run(folder: Folder) -> None:
    folder.playbook('- { step: add, tool: { kind: python, args: { a: 2 }, code: "result = a + 40" } }', name="real")
    tests = "real: [python]\ntests: [{name: one, expect: {status: completed, result: 42}}]\n"
    (folder.path / "real.test.yaml").write_text(tests, encoding="utf-8")
    assert folder.call("test", "real.yaml").code == 0


def test_it_runs_again_when_a_file_changes(folder: Folder) -> None:
    with folder.started("test", ".", "--watch") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"watching 2 files" in process.stderr.readline()
        path = folder.path / "play.test.yaml"
        path.write_text(TESTS.replace("result: large", "result: huge"), encoding="utf-8")
        assert b"watching 2 files" in process.stderr.readline()
        process.send_signal(2)
        out, _ = process.communicate()
    assert b"2 tests: 2 passed" in out
    assert b"2 tests: 1 passed, 1 failed" in out
    assert process.returncode == 1
