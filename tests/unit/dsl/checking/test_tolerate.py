"""Tolerated keys are warnings, and what is left must be a playbook."""

from __future__ import annotations

import pytest

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.validate import tolerate, validate
from noetl.wiring.embedded import language_kinds

KINDS = language_kinds()
PLAIN = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: a, path: tests/a }
workflow:
  - step: one
    tool: { kind: http, url: "http://example.com" }
    next: two
  - step: two
    tool: { kind: noop }
"""
ODD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: a, path: tests/a, owner_team: x }
strange: { a: [1, { b: 2 }] }
workflow:
  - step: one
    retires: 3
    tool: { kind: http, url: "http://example.com", colour: blue }
    next: two
  - step: two
    tool: { kind: noop, spec: { hue: 1 } }
"""


def severities(text: str) -> dict[str, str]:
    return {one.code: one.severity for one in validate(text, "a.yaml", KINDS, tolerant=True)}


def test_what_is_left_is_the_playbook_without_them() -> None:
    found, left = tolerate(CheckContext(parse(ODD), KINDS))
    assert {one.severity for one in found} == {"warning"}
    assert {one.start.line for one in found} == {3, 4, 7, 8, 11}
    assert left.playbook == normalize(parse(PLAIN))


def test_nothing_changes_without_unknown_keys() -> None:
    subject = CheckContext(parse(PLAIN), KINDS)
    assert tolerate(subject)[1] is subject


def test_other_mistakes_are_errors_still() -> None:
    assert severities(ODD.replace("next: two", "next: three"))["NOE201"] == "error"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [("- step: two", "- stepp: two", "NOE104"), ("url:", "address:", "NOE503"), ("workflow:", "work_flow:", "NOE104")],
)
def test_an_unknown_key_in_the_place_of_a_required_one_is_an_error(old: str, new: str, code: str) -> None:
    assert severities(PLAIN.replace(old, new)).get(code) == "error"
