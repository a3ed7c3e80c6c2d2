"""Rules about reading the file: codes NOE0xx."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules.reading import (
    bad_key,
    duplicate_key,
    empty,
    endless_alias,
    legacy_boolean,
    many_documents,
    not_a_map,
    not_text,
    split_value,
    syntax,
    tab,
    tag,
    too_deep,
    too_large,
    unknown_anchor,
)

_MODULES = (
    syntax, tab, duplicate_key, bad_key, tag, unknown_anchor, endless_alias, too_large, too_deep, not_text,
    many_documents, empty, not_a_map, legacy_boolean, split_value,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(module.RULE for module in _MODULES)
