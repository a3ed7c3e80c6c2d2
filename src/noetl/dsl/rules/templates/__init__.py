"""Rules about templates: codes NOE3xx."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules.templates import condition_without_braces as _without_braces
from noetl.dsl.rules.templates import constant_condition as _constant
from noetl.dsl.rules.templates import dollar_before_braces as _dollar
from noetl.dsl.rules.templates import impossible_comparison as _impossible
from noetl.dsl.rules.templates import iter_read_outside_loop as _iter_outside
from noetl.dsl.rules.templates import keychain_on_server as _keychain
from noetl.dsl.rules.templates import misplaced_scope as _misplaced
from noetl.dsl.rules.templates import nothing_before_first_task as _nothing_before
from noetl.dsl.rules.templates import python_attribute as _attribute
from noetl.dsl.rules.templates import refused_statement as _statement
from noetl.dsl.rules.templates import secret_in_state as _secret
from noetl.dsl.rules.templates import step_not_run_yet as _step_order
from noetl.dsl.rules.templates import stray_braces as _stray
from noetl.dsl.rules.templates import task_not_run_yet as _task_order
from noetl.dsl.rules.templates import template_syntax as _syntax
from noetl.dsl.rules.templates import text_around_condition as _text_around
from noetl.dsl.rules.templates import unbound_argument as _argument
from noetl.dsl.rules.templates import undeclared_workload_key as _workload
from noetl.dsl.rules.templates import unknown_filter as _filter
from noetl.dsl.rules.templates import unknown_function as _function
from noetl.dsl.rules.templates import unknown_iteration_key as _iteration
from noetl.dsl.rules.templates import unknown_method as _method
from noetl.dsl.rules.templates import unknown_name as _name
from noetl.dsl.rules.templates import unknown_outcome_field as _outcome
from noetl.dsl.rules.templates import unknown_result_field as _result
from noetl.dsl.rules.templates import unknown_test as _test
from noetl.dsl.rules.templates import unwritten_ctx_key as _ctx
from noetl.dsl.rules.templates import unwritten_scratch_key as _scratch

_MODULES = (
    _syntax, _name, _filter, _test, _function, _method, _statement, _attribute, _misplaced, _keychain, _secret,
    _iter_outside, _step_order, _task_order, _nothing_before, _outcome, _result, _impossible, _workload, _argument,
    _ctx, _iteration, _scratch, _constant, _without_braces, _text_around, _dollar, _stray,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(module.RULE for module in _MODULES)
