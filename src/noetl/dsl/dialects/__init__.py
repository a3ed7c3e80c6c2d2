"""Older spellings of the language and keys of other tools, one table each.

Tested in tests/unit/dsl/test_dialects.py.
"""

from __future__ import annotations

from functools import cache

from noetl.dsl.dialects.first import FIRST_FORMS
from noetl.dsl.dialects.form import LegacyForm
from noetl.dsl.dialects.second import SECOND_FORMS
from noetl.dsl.reading.nodes import Entry, MapNode

__all__ = ["FIRST_FORMS", "FORMS", "SECOND_FORMS", "LegacyForm", "keys_of", "recognise"]

FORMS: dict[tuple[str, str], tuple[LegacyForm, ...]] = {}  # by level and key
for _form in (*FIRST_FORMS, *SECOND_FORMS):
    FORMS[_form.level, _form.key] = (*FORMS.get((_form.level, _form.key), ()), _form)


@cache
def keys_of(level: str) -> frozenset[str]:
    """Return the keys of older forms at a level."""
    return frozenset(key for place, key in FORMS if place == level)


def recognise(level: str, entry: Entry, owner: MapNode) -> LegacyForm | None:
    """Return the first older form that matches an entry at this level, or None."""
    forms = FORMS.get((level, entry.key.text), ())
    return next((form for form in forms if form.matches(entry.value, owner)), None)
