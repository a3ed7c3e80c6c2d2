"""Rules about tools: codes NOE5xx."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules.tools import (
    conflicting_inputs,
    missing_input,
    not_available,
    plain_secret,
    python_syntax,
    raw_sql,
    shell_splice,
    template_in_code,
    transaction_control,
    unknown_field,
    unknown_kind,
)

_MODULES = (
    unknown_kind, unknown_field, missing_input, conflicting_inputs, plain_secret, shell_splice, raw_sql,
    python_syntax, template_in_code, transaction_control, not_available,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(module.RULE for module in _MODULES)
