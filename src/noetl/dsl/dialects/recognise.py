"""Tells whether an entry of a map is an older form; of several forms of one key, the first that fits counts."""

from __future__ import annotations

from noetl.dsl.dialects.first import FIRST_FORMS
from noetl.dsl.dialects.form import LegacyForm
from noetl.dsl.dialects.second import SECOND_FORMS
from noetl.dsl.nodes import Entry, ListNode, MapNode, Node, Scalar

_SHAPES: dict[str, type[Node]] = {"map": MapNode, "list": ListNode, "scalar": Scalar}


def _by_place() -> dict[tuple[str, str], tuple[LegacyForm, ...]]:
    found: dict[tuple[str, str], tuple[LegacyForm, ...]] = {}
    for form in (*FIRST_FORMS, *SECOND_FORMS):
        place = (form.level, form.key)
        found[place] = (*found.get(place, ()), form)
    return found


FORMS = _by_place()


def recognise(level: str, entry: Entry, owner: MapNode) -> LegacyForm | None:
    """Give the older form that an entry is at this level of the language, or None."""
    forms = FORMS.get((level, entry.key.text))
    if forms is None:
        return None
    return next((form for form in forms if _fits(form, entry.value, owner)), None)


def _fits(form: LegacyForm, node: Node, owner: MapNode) -> bool:
    if form.shape and not isinstance(node, _SHAPES[form.shape]):
        return False
    if form.values and not (isinstance(node, Scalar) and node.text in form.values):
        return False
    return not any(name in owner for name in form.unless)
