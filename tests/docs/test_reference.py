"""Check that regenerating the reference pages changes nothing."""

from __future__ import annotations

import re

import pytest

from noetl.cli.app import COMMANDS
from noetl.dsl.grammar import LEVELS
from noetl.dsl.rules import RULES
from noetl.model.events import EVENT_TYPES
from scripts.docs import FOLDER, NOTE, pages
from tests.docs.pages import ROOT

PAGES = pages()


def test_there_is_no_page_too_few_and_none_too_many() -> None:
    committed = {file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*") if file.is_file()}
    assert committed == set(PAGES), "run `make docs`"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_is_what_the_code_says(page: str) -> None:
    assert (FOLDER / page).read_text(encoding="utf-8") == PAGES[page], "run `make docs`"


def test_writing_them_twice_gives_the_same() -> None:
    assert pages() == PAGES


def test_every_page_says_that_it_is_generated_and_has_one_title() -> None:
    for page, text in PAGES.items():
        assert text.startswith(NOTE), page
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^# ", prose, re.MULTILINE)) == 1, page
        assert text.endswith("\n"), page
        assert not text.endswith("\n\n"), page
        assert all(char.isprintable() or char in "\n\t" for char in text), page


def test_everything_is_on_a_page() -> None:
    assert {f"diagnostics/{rule.code}.md" for rule in RULES} <= set(PAGES)
    assert all(f"({rule.code}.md)" in PAGES["diagnostics/README.md"] for rule in RULES)
    assert all(f"\n## {name}\n" in PAGES["language.md"] for name in LEVELS)
    assert all(f"\n## noetl {name}\n" in PAGES["cli.md"] for name in COMMANDS)
    assert all(f"\n| `{name}` |" in PAGES["events.md"] for name in EVENT_TYPES)


def test_every_environment_variable_is_on_the_page_of_settings() -> None:
    known = set(re.findall(r'"(NOETL_\w+)"', (ROOT / "src/noetl/settings.py").read_text(encoding="utf-8")))
    assert "NOETL_HOME" in known
    assert [name for name in sorted(known) if f"`{name}" not in PAGES["settings.md"]] == []
