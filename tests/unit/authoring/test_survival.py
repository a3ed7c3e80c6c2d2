"""No feature fails on truncated, corrupted or foreign documents."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.complete import complete
from noetl.authoring.features.definition import definitions, references
from noetl.authoring.features.fixes import fixes
from noetl.authoring.features.formatting import format_edits
from noetl.authoring.features.hover import hover
from noetl.authoring.features.rename import RefusedRename, rename, target
from noetl.authoring.features.symbols import symbols
from noetl.wiring.embedded import language_kinds
from tests.unit.authoring.editing import good

SPOILERS = (
    "", "'", '"', "{", "}", "{{", "}}", "[", ":", "- ", "\n", "|", "&a ", "*a ", "\t", "😀", "\x00", "{% for", "<<: ",
    "\r",
)  # fmt: skip


def use(text: str, offset: int) -> None:
    """Ask every feature about a place; only a rename may say no, and then in words."""
    reading = Reading(text, "any.yaml", language_kinds())
    found = complete(reading, offset)
    assert 0 <= found.start <= offset
    told = hover(reading, offset)
    assert told is None or 0 <= told.start <= told.end <= len(reading.text)
    for start, end in (*definitions(reading, offset), *references(reading, offset)):
        assert 0 <= start <= end <= len(reading.text)
    symbols(reading)
    format_edits(reading)
    list(fixes(reading, offset, offset))
    target(reading, offset)
    with suppress(RefusedRename):
        rename(reading, offset, "another")


@given(st.integers(0, len(good()) - 1), st.floats(0, 1), st.floats(0, 1), st.sampled_from(SPOILERS), st.integers(0, 12))
def test_spoiled_playbooks(number: int, place: float, cursor: float, spoiler: str, lost: int) -> None:
    text = good()[number][1].text
    at = int(place * len(text))
    spoiled = f"{text[:at]}{spoiler}{text[at + lost :]}"
    use(spoiled, int(cursor * len(spoiled)))
    use(spoiled, min(at + len(spoiler), len(spoiled)))


@given(st.integers(0, len(good()) - 1), st.floats(0, 1))
def test_playbooks_that_end_at_the_cursor(number: int, place: float) -> None:
    text = good()[number][1].text
    cut = text[: int(place * len(text))]
    use(cut, len(cut))


@given(st.text(st.sampled_from(list("ab:{}[],'\"|>-#&*!%. \n\r\t😀\x00\u2028")), max_size=40), st.floats(0, 1))
def test_any_text(text: str, cursor: float) -> None:
    use(text, int(cursor * len(text)))
