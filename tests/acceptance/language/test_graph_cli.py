"""`noetl graph`: every format, broken playbooks, unreadable and unwritable files."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.acceptance.run import Ran, noetl

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.yaml") if ".test." not in path.name)
FORMATS = ("text", "mermaid", "dot", "svg", "json")


def graph(*arguments: str, given: str | None = None, folder: Path = ROOT) -> Ran:
    return noetl("graph", *arguments, cwd=folder, stdin=given.encode() if given is not None else None)


def test_the_default_is_text() -> None:
    done = graph("examples/hello.yaml")
    assert (done.code, done.err) == (0, "")
    assert done.out == graph("examples/hello.yaml", "--format", "text").out
    assert done.out.startswith("hello · examples/hello\n3 steps, 2 arcs\n\n▶ greet")
    assert "├─→ shout  when greet.text | length > 20" in done.out


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_can_be_drawn(example: Path) -> None:
    done = graph(str(example), "--format", "svg")
    assert (done.code, done.err) == (0, "")
    assert ElementTree.fromstring(done.out).tag.endswith("svg")


@pytest.mark.parametrize(
    ("format", "first"),
    [("mermaid", "flowchart TD\n"), ("dot", 'digraph "hello" {\n'), ("svg", "<svg "), ("json", "{\n")],
)
def test_formats_and_files(format: str, first: str, tmp_path: Path) -> None:
    printed = graph("examples/hello.yaml", "--format", format)
    written = graph("examples/hello.yaml", "--format", format, "--output", str(tmp_path / "drawing"))
    assert printed.out.startswith(first)
    assert (written.code, written.out, written.err) == (0, "", "")
    assert (tmp_path / "drawing").read_text(encoding="utf-8") == printed.out


def test_json_names_steps_and_arcs() -> None:
    data = json.loads(graph("examples/hello.yaml", "--format", "json").out)
    assert [node["name"] for node in data["nodes"]] == ["greet", "shout", "say"]
    assert [(edge["source"], edge["target"]) for edge in data["edges"]] == [("greet", "shout"), ("greet", "say")]
    lines = (ROOT / "examples" / "hello.yaml").read_text(encoding="utf-8").splitlines()
    assert lines[data["nodes"][0]["line"] - 1].strip() == "- step: greet"


def test_stdin_is_drawn() -> None:
    text = (ROOT / "examples" / "hello.yaml").read_text(encoding="utf-8")
    assert graph("-", given=text).out == graph("examples/hello.yaml").out


@pytest.mark.parametrize("format", FORMATS)
def test_a_broken_playbook_is_drawn_as_far_as_it_goes_and_a_note_says_so(format: str) -> None:
    done = graph("examples/broken/hello.yaml", "--format", format)
    assert done.code == 0
    assert "shuot" in done.out
    assert "errors; the drawing shows what could be parsed" in done.err
    assert "See `noetl validate examples/broken/hello.yaml`." in done.err


def test_what_was_read_before_a_syntax_error_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "cut.yaml").write_text(
        "workflow:\n  - step: a\n    next: b\n  - step: b\n  -step: [\n", encoding="utf-8"
    )
    done = graph("cut.yaml", folder=tmp_path)
    assert done.code == 0
    assert "▶ a" in done.out
    assert "cut.yaml has" in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no steps to draw"),
        ("workflow: []\n", "no steps to draw"),
        ("[1, 2]\n", "no steps to draw"),
        ("a: [1\n", "line 2"),
        ("workflow: {{ x }}\n", "no steps to draw"),
    ],
)
def test_nothing_to_draw_is_told_with_the_reason(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "nothing.yaml").write_text(text, encoding="utf-8")
    done = graph("nothing.yaml", folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("noetl: nothing.yaml: ")
    assert said in done.err
    assert "`noetl validate nothing.yaml`" in done.err


def test_a_missing_file_is_told() -> None:
    done = graph("nowhere.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.err == "noetl: nowhere.yaml: no such file; check the path\n"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    done = graph("examples/hello.yaml", "--output", str(tmp_path / "no" / "such" / "file"))
    assert (done.code, done.out) == (2, "")
    assert "noetl: Cannot write " in done.err
    assert "No such file or directory" in done.err


def test_an_unknown_format_is_told_with_the_known_ones() -> None:
    done = graph("examples/hello.yaml", "--format", "png")
    assert done.code == 2
    assert "png" in done.err
    assert all(format in done.err for format in FORMATS)
