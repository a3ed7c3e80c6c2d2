"""A document is read exactly where it can be, and salvaged where it cannot."""

from __future__ import annotations

import pytest

from noetl.authoring.analysis.reading import Reading, is_playbook
from noetl.dsl.reading.nodes import Scalar
from noetl.wiring.embedded import language_kinds
from tests.unit.authoring.editing import HEAD, good, typed

BROKEN = f'{HEAD}  - step: store\n    tool: {{ kind: noop, result: "{{{{ fetch.results }}}}\n'


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("apiVersion: noetl.io/v10\nkind: Playbook", "yaml", True),
        ('{ "apiVersion" : "noetl.io/v2" }', "json", True),
        ("# a comment\nkind: Playbook\napiVersion: 'noetl.io/v1'", "yaml", True),
        ("", "noetl-playbook", True),
        ("", "yaml", False),
        ("apiVersion: apps/v1\nkind: Deployment", "yaml", False),
        ("see noetl.io/v10", "yaml", False),
    ],
)
def test_which_documents_are_playbooks(text: str, language: str, expected: bool) -> None:
    assert is_playbook(text, language) is expected


def test_diagnostics_come_from_the_exact_reading_alone() -> None:
    reading = Reading(BROKEN, "broken.yaml", language_kinds())
    assert [one.code for one in reading.diagnostics] == ["NOE001"]
    assert not reading.is_whole
    assert reading.subject is not reading.exact
    assert [step.name for step in reading.subject.playbook.workflow] == ["fetch", "store"]


def test_a_whole_document_is_read_once() -> None:
    reading = Reading(HEAD, "head.yaml", language_kinds())
    assert reading.is_whole
    assert reading.subject is reading.exact


def test_a_duplicate_key_makes_a_reading_doubtful_but_not_salvaged() -> None:
    reading = Reading(f"{HEAD}policy: {{}}\npolicy: {{}}\n", "twice.yaml", language_kinds())
    assert not reading.is_whole
    assert reading.subject is reading.exact


def test_the_word_in_the_place_of_the_cursor_is_a_new_one() -> None:
    reading, cursor = typed("apiVersion: noetl.io/v10\nQcursor: Qcursorq‸")
    marked, mark = reading.marked(cursor)
    assert mark not in reading.text
    assert marked.text == f"{reading.text}{mark}"


def test_every_character_of_a_scalar_is_found_again() -> None:
    count = 0
    for _, reading in good():
        for site in reading.subject.sites:
            for offset in range(0, len(site.node.text), 7):
                place = reading.subject.locate(site, offset)
                found = reading.inside(site.node, place)
                # Folding may put two characters at one place.
                assert found is not None
                assert reading.subject.locate(site, found) == place
                count += 1
    assert count > 2000


def test_quotes_are_no_part_of_the_text() -> None:
    reading, cursor = typed('a: ‸"x"')
    scalar = reading.exact.root.get("a") if reading.exact.root else None
    assert isinstance(scalar, Scalar)
    assert [reading.inside(scalar, cursor + more) for more in range(4)] == [None, 0, 1, None]


def test_the_step_around_an_offset() -> None:
    reading, cursor = typed(HEAD.replace("/{{ iter", "‸/{{ iter"))
    assert reading.step_at(cursor) == "fetch"
    assert reading.step_at(0) is None
