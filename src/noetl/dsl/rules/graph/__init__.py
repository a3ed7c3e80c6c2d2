"""Rules about the net: codes NOE4xx."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules.graph import (
    branch_write,
    dead_arc,
    dead_rule,
    endless_cycle,
    endless_jump,
    failure_not_routed,
    gate_waits_for_itself,
    ignored_next,
    join_too_large,
    loop_not_undone,
    never_admitted,
    never_succeeds,
    parallel_write,
    success_not_routed,
    swallowed_error,
    unreachable_step,
    useless_reducer,
)

_MODULES = (
    unreachable_step, never_admitted, gate_waits_for_itself, join_too_large, endless_cycle, success_not_routed,
    failure_not_routed, swallowed_error, dead_arc, parallel_write, useless_reducer, branch_write, ignored_next,
    dead_rule, endless_jump, never_succeeds, loop_not_undone,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(module.RULE for module in _MODULES)
