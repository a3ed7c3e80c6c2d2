"""Rules about the net: codes NOE4xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule
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

RULES: tuple[Rule, ...] = (
    unreachable_step.RULE, never_admitted.RULE, gate_waits_for_itself.RULE, join_too_large.RULE, endless_cycle.RULE,
    success_not_routed.RULE, failure_not_routed.RULE, swallowed_error.RULE, dead_arc.RULE, parallel_write.RULE,
    useless_reducer.RULE, branch_write.RULE, ignored_next.RULE, dead_rule.RULE, endless_jump.RULE, never_succeeds.RULE,
    loop_not_undone.RULE,
)  # fmt: skip
