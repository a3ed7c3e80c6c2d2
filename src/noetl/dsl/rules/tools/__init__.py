"""Rules about tools: codes NOE5xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule
from noetl.dsl.rules.tools import (
    conflicting_inputs,
    missing_input,
    plain_secret,
    python_syntax,
    raw_sql,
    shell_splice,
    template_in_code,
    transaction_control,
    unknown_field,
    unknown_kind,
)

RULES: tuple[Rule, ...] = (
    unknown_kind.RULE,
    unknown_field.RULE,
    missing_input.RULE,
    conflicting_inputs.RULE,
    plain_secret.RULE,
    shell_splice.RULE,
    raw_sql.RULE,
    python_syntax.RULE,
    template_in_code.RULE,
    transaction_control.RULE,
)
