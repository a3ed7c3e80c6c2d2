"""`noetl fmt`: in place, check, diff, pipe, and files that cannot be formatted."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.acceptance.run import noetl

UGLY = "apiVersion:   noetl.io/v10\nmetadata: {name: 'x'}  # c\n"
NEAT = 'apiVersion: noetl.io/v10\nmetadata: { name: "x" }  # c\n'


@pytest.fixture
def playbook(tmp_path: Path) -> Path:
    path = tmp_path / "playbook.yaml"
    path.write_text(UGLY, encoding="utf-8")
    return path


def test_a_file_is_formatted_in_place(playbook: Path) -> None:
    playbook.chmod(0o640)
    ran = noetl("fmt", str(playbook))
    assert (ran.code, ran.out, ran.err) == (0, "", "1 of 1 file formatted.\n")
    assert playbook.read_text(encoding="utf-8") == NEAT
    assert stat.S_IMODE(playbook.stat().st_mode) == 0o640
    assert [path.name for path in playbook.parent.iterdir()] == ["playbook.yaml"]
    assert noetl("fmt", str(playbook)).err == "0 of 1 file formatted.\n"


def test_a_link_stays_a_link(playbook: Path) -> None:
    link = playbook.parent / "link.yaml"
    link.symlink_to(playbook.name)
    assert noetl("fmt", str(link)).code == 0
    assert link.is_symlink()
    assert playbook.read_text(encoding="utf-8") == NEAT


def test_check_tells_and_changes_nothing(playbook: Path) -> None:
    ran = noetl("fmt", "--check", str(playbook))
    assert (ran.code, ran.out) == (1, f"{playbook}: would be formatted\n")
    assert playbook.read_text(encoding="utf-8") == UGLY
    playbook.write_text(NEAT, encoding="utf-8")
    ran = noetl("fmt", "--check", str(playbook))
    assert (ran.code, ran.out) == (0, "")


def test_diff_prints_and_changes_nothing(playbook: Path) -> None:
    ran = noetl("fmt", "--diff", "playbook.yaml", cwd=playbook.parent)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "--- playbook.yaml",
        "+++ playbook.yaml (formatted)",
        "@@ -1,2 +1,2 @@",
        *(f"-{line}" for line in UGLY.splitlines()),
        *(f"+{line}" for line in NEAT.splitlines()),
    ]
    assert playbook.read_text(encoding="utf-8") == UGLY
    assert noetl("fmt", "--diff", "--check", str(playbook)).code == 1


def test_stdin_goes_to_stdout() -> None:
    ran = noetl("fmt", "-", stdin=UGLY.encode())
    assert (ran.code, ran.out, ran.err) == (0, NEAT, "")
    ran = noetl("fmt", "-", "--check", stdin=UGLY.encode())
    assert (ran.code, ran.out) == (1, "<stdin>: would be formatted\n")


def test_a_folder_is_searched_for_playbooks(playbook: Path) -> None:
    (playbook.parent / "other.yaml").write_text("a:   1\n", encoding="utf-8")
    assert noetl("fmt", str(playbook.parent)).err == "1 of 1 file formatted.\n"


def test_a_broken_file_is_reported_and_left_and_the_others_are_formatted(playbook: Path) -> None:
    broken = playbook.parent / "broken.yaml"
    broken.write_text("a:   {{ x }}\nb: [\n", encoding="utf-8")
    ran = noetl("fmt", "broken.yaml", "playbook.yaml", cwd=playbook.parent)
    assert ran.code == 2
    assert 'broken.yaml:1:6: A value that begins with {{ must be in quotes: "{{ x }}".' in ran.err
    assert "broken.yaml: not formatted" in ran.err
    assert broken.read_text(encoding="utf-8") == "a:   {{ x }}\nb: [\n"
    assert playbook.read_text(encoding="utf-8") == NEAT


def test_a_broken_text_from_stdin_gives_no_output() -> None:
    ran = noetl("fmt", "-", stdin=b"a: \xff\n")
    assert (ran.code, ran.out) == (2, "")
    assert "<stdin>:1:4: The byte 0xff is not valid UTF-8" in ran.err


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    ran = noetl("fmt", str(tmp_path / "none.yaml"))
    assert ran.code == 2
    assert "no such file" in ran.err
    assert "Traceback" not in ran.err
