"""NOE802 reports forms of the second dialect, such as `case` or `vars`."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.dialects.forms import dialect_check

GOOD = example("""\
workflow:
  - step: count
    tool: { kind: noop, result: { total: 3 } }
    set: { ctx.total: "{{ output.data.total }}" }
    next: report
  - step: report
    tool: { kind: noop, message: "{{ ctx.total }}" }
""")

RULE = Rule(
    code="NOE802",
    name="second-dialect",
    severity="hint",
    summary="The playbook has forms of the second dialect: `case`, `vars`, `sink`, `retry` or `loop.collection`.",
    why="In the second dialect, one `case` mixed routing, writes and control, and `retry` hid loops. Now the server routes "
    "by arcs and the worker follows task policies, so that both can be checked, drawn and replayed. NoETL reads the older form and runs it unchanged.",
    fix="""Run `noetl upgrade FILE`, or leave the file as it is:

| second dialect | now |
|---|---|
| `case:` with `then: { next: … }` | `next: { arcs: [{ step: …, when: … }] }` |
| `case:` with `then: { sink: … }`, `sink:`, `save:` | a task with `spec: { sink: true }` at the end of the pipeline |
| `vars: { x: … }` | `set: { ctx.x: … }`, read as `ctx.x` |
| `retry:` | `spec.policy.rules` on the task: `then: { do: retry, attempts: … }`, for pages `do: jump` |
| `when:` on a step | `spec.policy.admit.rules` |
| `loop: { collection, element, max_concurrency }` | `loop: { in, iterator, spec: { max_in_flight } }` |
| `result: { as, collect, sink }` | `set: { ctx.x: … }`, and a task with `spec: { sink: true }` |
| `eval:`, `expr:` | `spec.policy.rules` with `when` |

The meaning is the same.""",
    bad=GOOD.replace('set: { ctx.total: "{{ output.data.total }}" }', 'vars: { total: "{{ result.total }}" }'),
    good=GOOD,
    check=dialect_check("v2"),
)
