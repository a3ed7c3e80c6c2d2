"""Open documents: read once per version, and only if they are playbooks."""

from __future__ import annotations

from collections.abc import Collection

from noetl.lsp.open_documents import Known, Opened
from noetl.wiring.embedded import language_kinds
from tests.unit.authoring.editing import HEAD


def test_a_version_is_read_once_and_a_change_is_a_new_version() -> None:
    document = Opened("file:///a.yaml", HEAD, "yaml", 1, "utf-16", Known(language_kinds()))
    assert document.reading is not None
    assert document.reading is document.reading
    changed = document.changed("services: {}", 2)
    assert (changed.version, changed.language, changed.reading) == (2, "yaml", None)


def test_other_playbooks_are_looked_for_once_until_something_is_saved() -> None:
    asked: list[str] = []

    def catalog(uri: str) -> Collection[str]:
        asked.append(uri)
        return ("etl/child",)

    known = Known(language_kinds(), catalog)
    assert known.catalog("file:///a.yaml") == known.catalog("file:///a.yaml") == ("etl/child",)
    assert asked == ["file:///a.yaml"]
    known.forget()
    known.catalog("file:///a.yaml")
    assert len(asked) == 2


def test_without_a_place_to_look_nothing_is_known_of_other_playbooks() -> None:
    assert Known(language_kinds()).catalog("untitled:1") is None


def test_a_file_of_tests_is_no_playbook_and_is_read_once() -> None:
    document = Opened("file:///a.test.yaml", "tests: []\n", "yaml", 1, "utf-16", Known(language_kinds()))
    assert (document.reading, document.tests is document.tests) == (None, True)
    assert document.tests is not None
    assert [trouble.message for trouble in document.tests.troubles] == ["'tests' is empty."]
    assert Opened("file:///a.yaml", HEAD, "yaml", 1, "utf-16", Known(language_kinds())).tests is None
