"""`noetl validate`: reports, formats, exit codes, folders, stdin, bad files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.acceptance.run import noetl

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workflow:
  - step: fetch
    tool: { kind: noop }
    next: store
  - step: store
    tool: { kind: noop }
"""
BROKEN = GOOD.replace("next: store", "next: stoer")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "broken.yaml").write_text(BROKEN)
    return tmp_path


def test_a_good_playbook_ends_with_zero(folder: Path) -> None:
    ran = noetl("validate", "good.yaml", cwd=folder)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "1 file checked, no problems found.\n"


def test_a_broken_one_is_reported_with_place_caret_reason_and_fix(folder: Path) -> None:
    ran = noetl("validate", "broken.yaml", cwd=folder)
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[0].startswith("broken.yaml:7:11: error[NOE201] ")
    assert "Did you mean 'store'?" in lines[0]
    assert lines[1] == "  7 |     next: stoer"
    assert lines[2] == "    |           ^^^^^"
    assert lines[3].startswith("  why: ")
    assert lines[4].startswith("  fix: ")


def test_json_is_an_interface(folder: Path) -> None:
    ran = noetl("validate", "--format", "json", "broken.yaml", "good.yaml", cwd=folder)
    assert ran.code == 1
    first = json.loads(ran.out)["diagnostics"][0]
    assert {key: first[key] for key in ("code", "severity", "file", "line", "column")} == {
        "code": "NOE201",
        "severity": "error",
        "file": "broken.yaml",
        "line": 7,
        "column": 11,
    }
    assert first["path"] == "workflow[0].next"
    assert first["message"]
    assert first["fix"]


def test_sarif_names_the_rule_and_the_region(folder: Path) -> None:
    log = json.loads(noetl("validate", "--format", "sarif", "broken.yaml", cwd=folder).out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    (rule,) = {r["id"] for r in run["tool"]["driver"]["rules"]} & {"NOE201"}
    found = next(result for result in run["results"] if result["ruleId"] == rule)
    assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == rule
    region = found["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 7, "startColumn": 11, "endLine": 7, "endColumn": 16}


def test_github_puts_each_diagnostic_on_its_line(folder: Path) -> None:
    ran = noetl("validate", "--format", "github", "broken.yaml", cwd=folder)
    line = next(line for line in ran.out.splitlines() if "NOE201" in line)
    assert line.startswith("::error file=broken.yaml,line=7,col=11,endLine=7,endColumn=16,title=NOE201::")


def test_everything_is_reported_at_once_and_in_order(folder: Path) -> None:
    text = BROKEN.replace("metadata:", "metdata:").replace("kind: noop }\n    next", "kind: nop }\n    next")
    ran = noetl("validate", "--format", "json", "-", stdin=text.encode(), cwd=folder)
    found = json.loads(ran.out)["diagnostics"]
    assert {d["file"] for d in found} == {"<stdin>"}
    assert len(found) >= 3
    assert [(d["line"], d["column"]) for d in found] == sorted((d["line"], d["column"]) for d in found)


def test_a_folder_means_the_playbooks_below_it(folder: Path) -> None:
    (folder / "other.yaml").write_text("just: data\n")
    (folder / "deep").mkdir()
    (folder / "deep" / "more.json").write_text(
        json.dumps(
            {
                "apiVersion": "noetl.io/v10",
                "kind": "Playbook",
                "metadata": {"name": "j", "path": "j"},
                "workflow": [{"step": "a", "tool": {"kind": "noop"}}],
            }
        )
    )
    ran = noetl("validate", ".", cwd=folder)
    assert ran.code == 1
    assert "in 3 files." in ran.out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_named_pipe_in_the_folder_holds_up_nothing(folder: Path) -> None:
    for name in ("pipe.json", "pipe.yaml"):
        os.mkfifo(folder / name)
    calls = GOOD.replace("tool: { kind: noop }\n    next", "tool: { kind: playbook, path: ./missing.yaml }\n    next")
    (folder / "good.yaml").write_text(calls)  # its path is looked for in all files
    assert "missing.yaml" in noetl("validate", "good.yaml", cwd=folder).out
    assert "in 2 files." in noetl("validate", ".", cwd=folder).out


def test_tolerant_turns_unknown_keys_into_warnings(folder: Path) -> None:
    text = GOOD.replace("    next: store\n", "    next: store\n    colour: red\n").encode()
    assert noetl("validate", "-", stdin=text).code == 1
    ran = noetl("validate", "--tolerant", "-", stdin=text)
    assert ran.code == 0
    assert "warning[" in ran.out
    assert noetl("validate", "--tolerant", "--strict", "-", stdin=text).code == 1


@pytest.mark.parametrize("name", ["missing.yaml", "empty-folder"])
def test_a_file_that_cannot_be_read_ends_with_two_and_one_clear_line(folder: Path, name: str) -> None:
    (folder / "empty-folder").mkdir()
    ran = noetl("validate", name, "good.yaml", cwd=folder)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert name in ran.err
    assert "Traceback" not in ran.err
    assert noetl("validate", name, cwd=folder).out == "No files checked.\n"


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\x00\x01\x02", b"\xff\xfe\xff", b"[" * 100_000, b"a: &a [*a]", b"{{{{", b"- - - -\n", b"\xef\xbb\xbf"],
)
def test_garbage_gets_a_diagnostic_and_no_stack_trace(garbage: bytes) -> None:
    ran = noetl("validate", "-", stdin=garbage)
    assert ran.code == 1
    assert "error[NOE0" in ran.out
    assert "Traceback" not in ran.out + ran.err


def test_a_terminal_is_never_spoken_to_by_the_source() -> None:
    text = GOOD.replace("next: store", 'next: "sto\\x1b[31mer\u202e"').encode()
    ran = noetl("validate", "-", stdin=text)
    assert ran.code == 1
    assert "\x1b" not in ran.out


def test_a_child_playbook_is_looked_for_on_disk(folder: Path) -> None:
    call = GOOD.replace("tool: { kind: noop }\n    next", "tool: { kind: playbook, path: PATH }\n    next")
    (folder / "caller.yaml").write_text(
        call.replace("PATH", "./child.yaml").replace("examples/hello", "examples/caller")
    )
    assert "child.yaml" in noetl("validate", "caller.yaml", cwd=folder).out
    (folder / "child.yaml").write_text(GOOD)
    assert noetl("validate", "caller.yaml", cwd=folder).out == "1 file checked, no problems found.\n"


def test_what_this_installation_cannot_run_is_a_warning(tmp_path: Path) -> None:
    tool = "{ kind: transfer, source: { kind: s3, path: a.csv }, target: { kind: file, path: b.csv } }"
    head = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: { name: a, path: a }\n"
    (tmp_path / "a.yaml").write_text(f"{head}workflow:\n  - step: a\n    tool: {tool}\n")
    ran = noetl("validate", "a.yaml", cwd=tmp_path)
    assert ran.code == 0
    assert "a.yaml:6:45: warning[NOE511] The transfer source 's3' cannot be used by this installation" in ran.out
    assert noetl("validate", "--strict", "a.yaml", cwd=tmp_path).code == 1
