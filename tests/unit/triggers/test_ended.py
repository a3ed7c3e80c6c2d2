"""Triggers of ends as they are written: what matches, and each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.schedules.spec import Problem
from noetl.triggers.ended import EndedSpec, chain_of, check, tags_of


@pytest.mark.parametrize(
    ("fields", "path", "status", "tags", "does"),
    [
        ({"path": "etl/*"}, "etl/a/b", "cancelled", (), True),
        ({"path": "etl/*"}, "Etl/a", "completed", (), False),
        ({"path": "etl/load"}, "etl/load2", "completed", (), False),
        ({"path": "*", "status": ("failed", "partial")}, "a", "failed", (), True),
        ({"path": "*", "status": ("failed",)}, "a", "completed", (), False),
        ({"path": "*", "tags": ("a", "b")}, "a", "failed", ("b", "c", "a"), True),
        ({"path": "*", "tags": ("a", "b")}, "a", "failed", ("a",), False),
    ],
)
def test_an_end_matches_by_path_status_and_tags(
    fields: dict[str, Any], path: str, status: str, tags: tuple[str, ...], does: bool
) -> None:
    assert EndedSpec(**fields).matches(path, status, tags) is does


@pytest.mark.parametrize(
    ("fields", "field", "text"),
    [
        ({"path": "*"}, "path", "matches this playbook itself"),
        ({"path": "etl/m?il"}, "path", "matches this playbook itself"),
        ({"path": "a", "payload": {"x": ["{{ body }}"]}}, "payload.x", "has no `body`"),
        ({"path": "a", "payload": {"x": "{{ execution."}}, "payload.x", "cannot be read"),
    ],
)
def test_a_mistake_names_its_field(fields: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(Problem) as caught:
        check(EndedSpec(**fields), "etl/mail")
    assert caught.value.field == field
    assert text in caught.value.what


def test_a_chain_is_counted_in_tags() -> None:
    assert chain_of(tags_of("t", 3)) == 3
    assert chain_of(("chain:x", "chain:-1", "chain:99999", "chain:²", "other")) == 0
    check(EndedSpec("etl/load", payload={"x": "{{ execution.error.message }}"}), "etl/mail")
