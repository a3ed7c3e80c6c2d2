"""Rules about names: codes NOE2xx."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules.names import (
    compensation_without_rollback,
    hidden_result,
    jump_before_first,
    reduce_without_write,
    scope_as_name,
    shadowing_iterator,
    undeclared_credential,
    undeclared_keychain_entry,
    unknown_arc_target,
    unknown_child_playbook,
    unknown_compensation,
    unknown_entry_step,
    unknown_final_step,
    unknown_jump_target,
    unknown_route_edge,
    unknown_step_in_function,
    unknown_workbook_task,
)

_MODULES = (
    unknown_arc_target, unknown_jump_target, jump_before_first, unknown_entry_step, unknown_final_step,
    unknown_compensation, compensation_without_rollback, unknown_workbook_task, unknown_child_playbook,
    shadowing_iterator, scope_as_name, hidden_result, undeclared_credential, undeclared_keychain_entry,
    unknown_route_edge, unknown_step_in_function, reduce_without_write,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(module.RULE for module in _MODULES)
