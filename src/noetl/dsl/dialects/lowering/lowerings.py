"""Every lowering by name: what it was, what it is now, and why that is the same.

The pages of the dialects, `noetl upgrade` and the notice of the checker are generated from it.
Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Dialect = Literal["v1", "v2"]


class Lowering(Struct, frozen=True):
    """A rewrite of an older form to the canonical one."""

    name: str
    dialect: Dialect
    sentence: str  # explains a change
    before: str
    after: str


LOWERINGS: dict[str, Lowering] = {}


def _lowering(dialect: Dialect, name: str, sentence: str, before: str, after: str) -> Lowering:
    made = Lowering(name, dialect, sentence, before, after)
    LOWERINGS[name] = made
    return made


# The first dialect.
STEPS: Final = _lowering(
    "v1", "steps-in-order",
    "`steps` ran in file order, so every step has an arc to the next one.",
    "steps:\n  - name: a\n    type: noop\n  - name: b\n    type: noop",
    "workflow:\n  - step: a\n    tool: { kind: noop }\n    next: b\n  - step: b\n    tool: { kind: noop }",
)  # fmt: skip
HEAD: Final = _lowering(
    "v1", "head",
    "A document needed no head: `apiVersion` and `kind` identify it.",
    "name: weather\npath: demo/weather\nsteps:\n  - { step: start, type: noop }",
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: { name: weather, path: demo/weather }\n\nworkflow:\n"
    "  - { step: start, tool: { kind: noop } }",
)  # fmt: skip
METADATA: Final = _lowering(
    "v1", "root-metadata",
    "`name`, `path` and what else described a playbook stood on its root; they are its `metadata`.",
    "name: weather\npath: demo/weather", "metadata: { name: weather, path: demo/weather }",
)  # fmt: skip
STEP_NAME: Final = _lowering(
    "v1", "step-name",
    "The name of a step is the value of `step`.",
    "- name: load\n  tool: { kind: noop }", "- step: load\n  tool: { kind: noop }",
)  # fmt: skip
TYPED_STEP: Final = _lowering(
    "v1", "typed-step",
    "`type`, or `tool` with a name, chose the tool of a step, and the fields of the tool stood on the step; a step holds "
    "them under `tool`.",
    "- step: load\n  type: http\n  url: https://example.org",
    "- step: load\n  tool: { kind: http, url: https://example.org }",
)  # fmt: skip
TYPED_TASK: Final = _lowering(
    "v1", "typed-task",
    "`type`, `tool` or `action` of a task is its `kind`.",
    "tool: { type: noop }", "tool: { kind: noop }",
)  # fmt: skip
CALL: Final = _lowering(
    "v1", "call",
    "`call` ran a task of the workbook, which the kind `workbook` does.",
    "- step: greet\n  call: { type: workbook, name: hello }",
    "- step: greet\n  tool: { kind: workbook, task: hello }",
)  # fmt: skip
WITH: Final = _lowering(
    "v1", "with",
    "`with` or `data` gave inputs: they are the `input` of a task, and the `args` of an arc.",
    "- step: greet\n  type: workbook\n  name: hello\n  with: { who: world }",
    "- step: greet\n  tool: { kind: workbook, task: hello, input: { who: world } }",
)  # fmt: skip
ITERATOR: Final = _lowering(
    "v1", "iterator-step",
    "A step of `type: iterator` repeated its `task`: a `loop` repeats the tool of its step.",
    '- step: each\n  type: iterator\n  collection: "{{ workload.cities }}"\n  element: city\n'
    "  task: { type: noop }",
    '- step: each\n  loop: { in: "{{ workload.cities }}", iterator: city }\n  tool: { kind: noop }',
)  # fmt: skip
INNER_ITERATOR: Final = _lowering(
    "v1", "inner-iterator",
    "An iterator inside an iterator ran its task for each of its own elements: tasks of the pipeline do, one element "
    "after the other, and the last one gives `results` and `stats`, as a loop does.",
    "task:\n  type: iterator\n  collection: \"{{ city.streets }}\"\n  element: street\n  task: { type: noop }",
    'tool:\n  - street_begin: { kind: noop, set: { iter.street_list: "{{ city.streets }}", iter.street_index: 0, … } }\n'
    "  - street_each: { kind: noop, set: { iter.street: … }, … }\n  - street_task: { kind: noop }\n"
    "  - street_next: { …, spec: { policy: { rules: [{ else: { then: { do: jump, to: street_each } } }] } } }\n"
    "  - street_end: { kind: noop, result: { results: …, stats: … } }",
)  # fmt: skip
LOOP_NAMES: Final = _lowering(
    "v1", "loop-names",
    "`_loop` described the iteration: its index is `iter.index` and its item the iterator.",
    '"{{ _loop.current_index }}"', '"{{ iter.index }}"',
)  # fmt: skip
ITERATOR_CHILD: Final = _lowering(
    "v1", "iterator-child",
    "A child playbook of an iterator got the workload, its element and `_loop`: they are its `input`.",
    "task: { type: playbook, path: demo/one }",
    'tool:\n  kind: playbook\n  path: demo/one\n  input: { city: "{{ iter.city }}", _loop: { … } }',
)  # fmt: skip
SKIP: Final = _lowering(
    "v1", "skip-condition",
    "`when` or `pass` decided whether a step was skipped: its gate skips it, and the next step runs.",
    '- step: load\n  when: "{{ workload.full }}"\n  type: noop',
    '- step: load\n  spec:\n    policy:\n      admit:\n        rules:\n          - when: "{{ workload.full }}"\n'
    "            then: { allow: true }\n          - else: { then: { allow: skip } }\n  tool: { kind: noop }",
)  # fmt: skip

# The second dialect.
CASE_NEXT: Final = _lowering(
    "v2", "case-next",
    "A rule of `case` with `next` chose the next step: that is an arc with a `when`, before the arcs of `next`.",
    "case:\n  - when: \"{{ event.name == 'step.exit' and response.n > 3 }}\"\n    then: { next: [{ step: many }] }\n"
    "next: [{ step: few }]",
    "next:\n  spec: { mode: exclusive }\n  arcs:\n    - step: many\n"
    "      when: \"{{ event.name == 'step.exit' and outcome.result.n > 3 }}\"\n    - step: few",
)  # fmt: skip
CASE_SET: Final = _lowering(
    "v2", "case-set",
    "A rule of `case` with `set` wrote values when it matched: on the arc of the rule, or in the `set` of the step.",
    'case:\n  - when: "{{ response.n > 3 }}"\n    then: { set: { big: true } }',
    'set:\n  ctx.big: "{{ (true) if (outcome.result.n > 3) else (ctx.big | default(none)) }}"',
)  # fmt: skip
CASE_SINK: Final = _lowering(
    "v2", "case-sink",
    "A rule of `case` with `sink` wrote the result: a task with `spec.sink` at the end of the pipeline does, and the "
    "result of the step stays the one before it.",
    "case:\n  - when: \"{{ event.name == 'step.exit' and response is defined }}\"\n"
    "    then: { sink: { tool: { kind: postgres, table: rows } } }",
    'tool:\n  - load_task: { … }\n  - sink: { kind: postgres, table: rows, values: "{{ _prev }}", spec: { sink: true } }',
)  # fmt: skip
SINK_STEP: Final = _lowering(
    "v2", "sink-step",
    "A `sink` after a failure or after a whole loop wrote once: it is a step of its own between the two.",
    "case:\n  - when: \"{{ event.name == 'call.error' }}\"\n    then: { sink: { … }, next: repair }",
    "next:\n  arcs:\n    - step: load_sink\n      when: \"{{ event.name == 'call.error' }}\"\n"
    '      args: { error: "{{ outcome.error }}" }',
)  # fmt: skip
CASE_CALL: Final = _lowering(
    "v2", "case-call",
    "A rule of `case` with `call` asked for the next page, and `collect` kept it: that is `retry` with `next_call`.",
    'case:\n  - when: "{{ response.data.more }}"\n    then:\n      - collect: { path: data.rows, strategy: append }\n'
    '      - call: { params: { page: "{{ response.data.page + 1 }}" } }',
    'retry:\n  - when: "{{ response.data.more }}"\n    then:\n      collect: { path: data.rows, strategy: append }\n'
    '      next_call: { params: { page: "{{ response.data.page + 1 }}" } }',
)  # fmt: skip
VARS: Final = _lowering(
    "v2", "vars",
    "`vars` kept values for later steps: `set` writes them to `ctx`, and `vars.x` reads `ctx.x`.",
    'vars: { total: "{{ result.total }}" }', 'set: { ctx.total: "{{ outcome.result.total }}" }',
)  # fmt: skip
SINK: Final = _lowering(
    "v2", "sink",
    "`sink` or `save` wrote the result: a task with `spec.sink` at the end of the pipeline does, and the result of the "
    "step stays the one before it.",
    "sink: { tool: { kind: postgres, table: rows } }",
    '- sink: { kind: postgres, table: rows, values: "{{ _prev }}", spec: { sink: true } }',
)  # fmt: skip
WORKBOOK_SINK: Final = _lowering(
    "v2", "workbook-sink",
    "`sink` of a task of the workbook wrote its result: that is a task of its own, which each caller calls after it.",
    "workbook: { load: { kind: http, …, sink: { tool: { kind: postgres, table: rows } } } }",
    'workbook:\n  load: { kind: http, … }\n  load_sink: { kind: postgres, table: rows, values: "{{ input.result }}" }\n'
    "workflow:\n  - step: a\n    tool:\n      - a_task: { kind: workbook, task: load }\n"
    '      - sink: { kind: workbook, task: load_sink, input: { result: "{{ _prev }}" }, spec: { sink: true } }',
)  # fmt: skip
RETRY: Final = _lowering(
    "v2", "retry",
    "A rule of `retry` repeated a call: a rule of the task's policy does, with `do: retry`.",
    'retry:\n  - when: "{{ error.status == 503 }}"\n    then: { max_attempts: 3, initial_delay: 2 }',
    'spec:\n  policy:\n    rules:\n      - when: "{{ outcome.http.status == 503 }}"\n'
    "        then: { do: retry, attempts: 3, delay: 2 }\n"
    "      - when: \"{{ outcome.status == 'error' }}\"\n        then: { do: fail }\n"
    "      - else: { then: { do: continue } }",
)  # fmt: skip
PAGES: Final = _lowering(
    "v2", "retry-pages",
    "A rule of `retry` with `next_call` fetched page after page: a last task jumps back to the call as long as its "
    "condition holds, and `spec.result.strategy` combines the pages.",
    'retry:\n  - when: "{{ response.data.next is not none }}"\n    then:\n      max_attempts: 100\n'
    '      next_call: { params: { cursor: "{{ response.data.next }}" } }\n'
    "      collect: { strategy: append, path: data.rows }",
    'tool:\n  - load_task:\n      params: { cursor: "{{ step.next_cursor | default(none) }}" }\n'
    "      spec: { result: { strategy: concat, merge_path: data.rows } }\n      set: { step.more: …, step.next_cursor: … }\n"
    '  - next_call: { kind: noop, spec: { sink: true, policy: { rules: [{ when: "{{ step.more }}", '
    "then: { do: jump, to: load_task } }, …] } } }",
)  # fmt: skip
RESULT_AS: Final = _lowering(
    "v2", "result-as",
    "`result.as` named the result of a step: `set` keeps it in `ctx` under that name.",
    "result: { as: slot }", 'set: { ctx.slot: "{{ outcome.result }}" }',
)  # fmt: skip
RESULT_COLLECT: Final = _lowering(
    "v2", "result-collect",
    "`result.collect` named the results of a loop: `set` keeps them in `ctx` under that name.",
    "result: { collect: { into: rows } }", 'set: { ctx.rows: "{{ outcome.result.results }}" }',
)  # fmt: skip
LOOP_KEYS: Final = _lowering(
    "v2", "loop-keys",
    "`collection` or `items` of a loop is `in`, and `element` is `iterator`.",
    'loop: { collection: "{{ workload.cities }}", element: city }', 'loop: { in: "{{ workload.cities }}", iterator: city }',
)  # fmt: skip
LOOP_LIMIT: Final = _lowering(
    "v2", "loop-limit",
    "`max_concurrency` bounded the items that ran at once: that is `mode: parallel` with `max_in_flight`.",
    "loop: { in: [1, 2], iterator: n, max_concurrency: 2 }",
    "loop: { in: [1, 2], iterator: n, mode: parallel, max_in_flight: 2 }",
)  # fmt: skip
ARC_THEN: Final = _lowering(
    "v2", "arc-then",
    "`then` and `else` of an arc listed steps: each gets an arc of its own.",
    'next:\n  - when: "{{ ctx.ok }}"\n    then: [{ step: good }]\n  - else: [{ step: bad }]',
    'next:\n  spec: { mode: exclusive }\n  arcs:\n    - step: good\n      when: "{{ ctx.ok }}"\n    - step: bad',
)  # fmt: skip
ALL_ARCS: Final = _lowering(
    "v1", "all-arcs",
    "A list of steps without conditions led to all of them: the router is inclusive.",
    "next: [{ step: left }, { step: right }]",
    "next: { spec: { mode: inclusive }, arcs: [{ step: left }, { step: right }] }",
)  # fmt: skip
NEXT_MAP: Final = _lowering(
    "v2", "next-map",
    "`next` with one step was a map, in documents before v10: it is the only arc of a list.",
    "next: { step: end }", "next: [{ step: end }]",
)  # fmt: skip
STEP_GATE: Final = _lowering(
    "v2", "step-gate",
    "`when` of a step decided whether it may run: its gate waits until the condition holds.",
    '- step: both\n  when: "{{ ctx.a and ctx.b }}"',
    '- step: both\n  spec: { policy: { admit: { rules: [{ when: "{{ ctx.a and ctx.b }}", then: { allow: true } }] } } }',
)  # fmt: skip
PARKED: Final = _lowering(
    "v2", "gate-at-the-end",
    "A step whose `when` never held did not keep its execution open: `on_parked: finish`.",
    "executor: {}", "executor: { spec: { on_parked: finish } }",
)  # fmt: skip
EVAL: Final = _lowering(
    "v2", "eval",
    "`eval` and `expr` decided on an outcome: they are rules of the task's policy, with `when`.",
    'eval: [{ expr: "{{ error }}", do: fail }, { else: { do: continue } }]',
    'spec: { policy: { rules: [{ when: "{{ outcome.error }}", then: { do: fail } }, { else: { then: { do: continue } } }] } }',
)  # fmt: skip
NAMES: Final = _lowering(
    "v2", "outcome-names",
    "`response`, `result` and `this` are the result of the outcome, and `error` is its error.",
    'when: "{{ response.n > 3 }}"', 'when: "{{ outcome.result.n > 3 }}"',
)  # fmt: skip
BINDS: Final = _lowering(
    "v2", "bound-args",
    "`%(name)s` in SQL is bound from `params`, so the `args` that it names are there.",
    'query: "DELETE FROM slot WHERE id = %(id)s"\nargs: { id: 7 }',
    'query: "DELETE FROM slot WHERE id = %(id)s"\nparams: { id: 7 }',
)  # fmt: skip
HTTP_ARGS: Final = _lowering(
    "v2", "http-args",
    "`args` of a request were sent: in the body of a POST, PUT or PATCH, else in the query.",
    "tool: { kind: http, method: POST, url: https://example.org, args: { id: 7 } }",
    "tool: { kind: http, method: POST, url: https://example.org, json: { id: 7 } }",
)  # fmt: skip
TARGET_MODE: Final = _lowering(
    "v2", "target-mode",
    "`mode` of a transfer's target is the `mode` of the transfer.",
    "tool: { kind: transfer, source: { … }, target: { kind: postgres, table: orders, mode: upsert } }",
    "tool: { kind: transfer, source: { … }, target: { kind: postgres, table: orders }, mode: upsert }",
)  # fmt: skip
START: Final = _lowering(
    "v2", "start-step",
    "A step named `start` was the entry, wherever it stood: `executor.spec.entry_step` names it.",
    "workflow:\n  - step: work\n    tool: { kind: noop }\n  - step: start\n    next: work",
    "executor: { spec: { entry_step: start } }",
)  # fmt: skip
END: Final = _lowering(
    "v2", "end-step",
    "The step `end` needed no definition: it is a step without a tool.",
    "next: [{ step: end }]", "workflow:\n  - …\n  - step: end",
)  # fmt: skip
WATCHED: Final = _lowering(
    "v2", "watching-arc",
    "An arc that waited for the end of a sibling is an arc of that sibling.",
    "- step: reserve\n  next:\n    - step: charge\n    - when: \"{{ fail('charge') }}\"\n      step: undo",
    "- step: reserve\n  next: [{ step: charge }]\n- step: charge\n  next:\n    arcs:\n      - step: undo\n"
    "        when: \"{{ event.name == 'step.failed' }}\"",
)  # fmt: skip
