"""The rules of this group, by code."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules.shape import (
    action_field,
    action_outside_policy,
    bad_ended_trigger,
    bad_notification,
    bad_schedule,
    bad_set_target,
    bad_subscription,
    bad_value,
    bad_webhook,
    bound_without_parallel,
    delay_above_cap,
    duplicate_declaration,
    duplicate_label,
    duplicate_step,
    empty_list,
    idle_step,
    incomplete_rule,
    iter_outside_loop,
    key_twice,
    long_name,
    loop_source,
    loop_without_tool,
    misplaced_else,
    misplaced_key,
    missing_field,
    no_effect,
    not_a_playbook,
    not_templated,
    ref_naming,
    repeated_write,
    reserved_name,
    set_in_spec,
    unknown_format,
    unknown_key,
    unknown_type,
    unreadable_name,
    unsafe_schema,
    wrong_type,
)

_MODULES = (
    unknown_key, misplaced_key, wrong_type, missing_field, bad_value, duplicate_step, duplicate_label, not_a_playbook,
    action_outside_policy, set_in_spec, ref_naming, reserved_name, key_twice, not_templated, empty_list, idle_step,
    incomplete_rule, misplaced_else, loop_source, action_field, bad_set_target, unreadable_name,
    duplicate_declaration, iter_outside_loop, loop_without_tool, bound_without_parallel, repeated_write,
    delay_above_cap, unknown_format, unknown_type, unsafe_schema, bad_schedule, bad_webhook, bad_ended_trigger,
    bad_subscription, bad_notification, long_name, no_effect,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(module.RULE for module in _MODULES)
