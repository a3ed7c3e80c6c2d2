"""Laws of formatting any text: same meaning, same comments, idempotent."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given

from noetl.dsl.formatter import format_text
from noetl.dsl.formatter.format import has_faults, lay_out, means_the_same
from noetl.dsl.reading.nodes import plain
from noetl.dsl.reading.parse import parse
from tests.unit.dsl.reading.yaml_texts import playbook_texts, yaml_noise, yaml_texts

COMMENT = re.compile(r"#\s*c\d+.*")


def comments(text: str) -> list[str]:
    return [found.rstrip() for found in COMMENT.findall(text)]


def check_laws(text: str) -> str:
    formatted = format_text(text)
    before, after = parse(text), parse(formatted)
    assert repr(in_order(plain(after.root))) == repr(in_order(plain(before.root)))
    assert sorted(comments(formatted)) == sorted(comments(text))
    assert format_text(formatted) == formatted
    return formatted


def in_order(data: object) -> object:
    if isinstance(data, dict):
        return {key: in_order(data[key]) for key in sorted(data)}
    return [in_order(item) for item in data] if isinstance(data, list) else data


@given(yaml_texts())
def test_random_documents(text: str) -> None:
    formatted = check_laws(text)
    if has_faults(parse(text)):
        assert formatted == text
        return
    assert "\r" not in formatted
    assert formatted.endswith("\n")


@given(yaml_texts())
def test_comments_stay_in_order_and_no_document_has_to_be_left_alone(text: str) -> None:
    """The check at the end is a safety net: the layout gets every document right."""
    document = parse(text.replace("\r\n", "\n"))
    if has_faults(document):
        return
    formatted = lay_out(document.source.text, reorder=False)
    assert formatted is not None
    assert means_the_same(document, formatted)
    assert plain(parse(formatted).root).keys() == plain(document.root).keys()
    assert comments(formatted) == comments(text)
    assert lay_out(formatted, reorder=False) == formatted


@given(playbook_texts())
def test_playbooks_with_their_keys_in_any_order(text: str) -> None:
    formatted = check_laws(text)
    if not has_faults(parse(text)):
        laid_out = lay_out(text, reorder=True), lay_out(text, reorder=False)
        assert formatted in laid_out


@given(yaml_noise)
def test_noise(text: str) -> None:
    check_laws(text)


def test_every_playbook_of_the_corpus() -> None:
    files = sorted(Path(__file__).parents[3].joinpath("corpus").rglob("*.yaml"))
    assert files
    for file in files:
        check_laws(file.read_bytes().decode("utf-8", "replace"))
