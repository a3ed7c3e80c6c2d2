"""Prove that the voice lint fails on what it forbids.

`make check` runs scripts/voice.py on the project itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.voice import FIRST_LINE, ROOT, Finding, linted, package, page, python, table


def rules(text: str, with_literals: bool = True) -> list[tuple[int, str]]:
    return [(found.line, found.rule) for found in python("src/noetl/x.py", text, with_literals)]


@pytest.mark.parametrize("start", ["Give", "Gives", "Tell", "Tells", "Let", "Lets", "Say", "Says", "So many"])
def test_a_forbidden_opening_is_seen(start: str) -> None:
    text = f'"""A module."""\n\n\ndef f():\n    """{start} things."""\n'
    assert (5, "opening") in rules(text)
    assert rules(text.replace(start, f"{start}something")) == []


def test_a_long_first_line_is_seen() -> None:
    assert rules(f'"""{"x" * FIRST_LINE}\n\n{"y" * 100}"""\n') == []
    assert rules(f'"""{"x" * (FIRST_LINE + 1)}"""\n') == [(1, "length")]


@pytest.mark.parametrize(
    "word", ["Whoever", "nobody", "somebody", "is told", "are told", "those who", "he", "who asks"]
)
def test_a_forbidden_word_is_seen_wherever_people_read(word: str) -> None:
    assert rules(f'"""A module.\n\nIt has a line.\nThen {word} comes.\n"""\n') == [(4, "word")]
    assert rules(f"x = 1  # {word} comes\n") == [(1, "word")]
    assert rules(f'x = "then {word} comes"\n') == [(1, "word")]
    assert rules(f'x = f"then {{y}} and {word} comes"\n') == [(1, "word")]
    assert rules(f'x = "then {word} comes"\n', with_literals=False) == []
    assert [found.line for found in page("docs/x.md", f"# Title\n\nThen {word} comes.\n")] == [3]


def test_code_and_playbooks_are_exempt() -> None:
    assert list(page("docs/x.md", "`nobody`\n\n```yaml\nto: nobody\n```\n\n   ```sh\n   nobody\n   ```\n")) == []
    assert rules('x = "nobody"\ny = """\n- step: a\n  tool: {kind: noop, message: nobody comes}\n"""\n') == []
    assert rules('"""Reads `nobody`."""\n# as `whoever` says\n') == []


def test_findings_are_counted_per_package() -> None:
    assert package("src/noetl/engine/handlers/decide.py") == "src/noetl/engine"
    assert package("src/noetl/errors.py") == "src/noetl"
    assert package("docs/how-to/x.md") == "docs/how-to"
    assert package("README.md") == "README.md"
    found = [Finding("src/noetl/engine/a.py", 1, rule, "") for rule in ("word", "word", "length")]
    assert table(found).splitlines()[1].split() == ["src/noetl/engine", "0", "1", "2", "3"]


def test_only_limits_the_files() -> None:
    files = {file.relative_to(ROOT).as_posix() for file in linted()}
    assert {"README.md", "docs/glossary.md", "src/noetl/__init__.py", "scripts/voice.py"} <= files
    assert linted(["README.md", "src/noetl/errors.py"]) == [ROOT / "README.md", ROOT / "src/noetl/errors.py"]


def test_a_finding_is_printed_with_its_place_and_fails_the_command(tmp_path: Path) -> None:
    copy = tmp_path / "scripts" / "voice.py"
    copy.parent.mkdir()
    copy.write_text((ROOT / "scripts/voice.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "README.md").write_text("# Title\n\nNobody reads it.\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(copy), "--only", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "README.md:3: word: 'Nobody'"
    (tmp_path / "README.md").write_text("# Title\n", encoding="utf-8")
    done = subprocess.run([sys.executable, str(copy)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
