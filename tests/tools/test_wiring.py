"""The composition root hands the kinds to the language."""

from __future__ import annotations

from noetl.tools import kinds
from noetl.wiring import kind_problems, language_kinds


def test_the_language_sees_every_kind() -> None:
    assert language_kinds() is kinds()
    assert {"http", "wait"} <= set(language_kinds())


def test_problems_of_packages_are_passed_on() -> None:
    assert kind_problems() == kinds().problems
