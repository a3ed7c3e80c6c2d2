"""What holds for the formatting of any text: same meaning, same comments, and nothing left to do a second time."""

from __future__ import annotations

import re

from hypothesis import event, given

from noetl.dsl.layout import format_text
from noetl.dsl.layout.format import has_faults
from noetl.dsl.nodes import plain
from noetl.dsl.parse import parse
from tests.unit.dsl.yaml_texts import yaml_noise, yaml_texts

COMMENT = re.compile(r"#\s*c\d+.*")


def comments(text: str) -> list[str]:
    return [found.rstrip() for found in COMMENT.findall(text)]


def check(text: str) -> str:
    formatted = format_text(text)
    before, after = parse(text), parse(formatted)
    assert repr(plain(after.root)) == repr(plain(before.root))
    assert comments(formatted) == comments(text)
    assert format_text(formatted) == formatted
    return formatted


@given(yaml_texts())
def test_random_documents(text: str) -> None:
    formatted = check(text)
    if has_faults(parse(text)):
        assert formatted == text
        return
    event("changed" if formatted != text else "as it was")
    lines = formatted.split("\n")
    assert lines[-1] == ""
    assert "\r" not in formatted


@given(yaml_noise)
def test_noise(text: str) -> None:
    check(text)
