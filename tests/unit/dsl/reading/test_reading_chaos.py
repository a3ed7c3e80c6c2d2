"""The laws of reading and formatting on many more random texts: `make chaos`."""

from __future__ import annotations

import pytest
from hypothesis import given

from noetl.dsl.reading.parse import parse
from tests.unit.dsl.formatter.test_format_laws import check_laws
from tests.unit.dsl.reading.test_source_map import check as check_places
from tests.unit.dsl.reading.yaml_texts import playbook_texts, yaml_noise, yaml_texts

pytestmark = pytest.mark.chaos


@given(yaml_texts() | yaml_noise)
def test_every_character_is_found(text: str) -> None:
    check_places(parse(text))


@given(yaml_texts() | playbook_texts() | yaml_noise)
def test_formatting_keeps_meaning_and_comments(text: str) -> None:
    check_laws(text)
