"""Rules about reading the file: codes NOE0xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule
from noetl.dsl.rules.reading import (
    bad_key,
    duplicate_key,
    empty,
    endless_alias,
    legacy_boolean,
    many_documents,
    not_a_map,
    not_text,
    syntax,
    tab,
    tag,
    too_deep,
    too_large,
    unknown_anchor,
)

RULES: tuple[Rule, ...] = (
    syntax.RULE, tab.RULE, duplicate_key.RULE, bad_key.RULE, tag.RULE, unknown_anchor.RULE, endless_alias.RULE,
    too_large.RULE, too_deep.RULE, not_text.RULE, many_documents.RULE, empty.RULE, not_a_map.RULE, legacy_boolean.RULE,
)  # fmt: skip
