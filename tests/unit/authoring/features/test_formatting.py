"""Formatting an open document gives what the formatter gives, as one small edit."""

from __future__ import annotations

from noetl.authoring.features.formatting import format_edits
from noetl.authoring.features.rename import apply_edits
from noetl.dsl.formatter import format_text
from tests.unit.authoring.editing import good, typed

UNEVEN = "apiVersion: noetl.io/v10\nkind:   Playbook\nmetadata: {name: a, path: b}\nworkflow:\n    - step: one\n      tool:\n         kind: noop\n‸"


def test_the_edit_lays_the_text_out() -> None:
    reading, _ = typed(UNEVEN)
    (edit,) = format_edits(reading)
    assert apply_edits(reading.text, [edit]) == format_text(reading.text) != reading.text
    assert edit.start > 0


def test_line_ends_stay_what_they_were() -> None:
    reading, _ = typed(UNEVEN.replace("\n", "\r\n"))
    after = apply_edits(reading.text, format_edits(reading))
    assert after.replace("\r\n", "\n") == format_text(reading.text).replace("\r\n", "\n")
    assert "\n" not in after.replace("\r\n", "")


def test_what_is_laid_out_or_cannot_be_read_gets_no_edit() -> None:
    reading, _ = typed(UNEVEN)
    assert format_edits(reading.with_text(apply_edits(reading.text, format_edits(reading)))) == ()
    assert format_edits(reading.with_text("apiVersion: noetl.io/v10\nmetadata: {")) == ()


def test_good_playbooks_are_formatted_as_the_command_does() -> None:
    for _, reading in good():
        after = apply_edits(reading.text, format_edits(reading))
        assert after.replace("\r\n", "\n") == format_text(reading.text).replace("\r\n", "\n")
