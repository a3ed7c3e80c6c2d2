"""NOE802 reports a form of the second dialect: `case`, `vars`, `sink`, `retry`, `loop.collection`."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.dialects.forms import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: count, path: examples/count }
workflow:
  - step: count
    tool: { kind: noop, result: { total: 3 } }
    set: { ctx.total: "{{ output.data.total }}" }
    next: report
  - step: report
    tool: { kind: noop, message: "{{ ctx.total }}" }
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "v2")


RULE = Rule(
    code="NOE802",
    name="second-dialect",
    group="dialects",
    severity="error",
    summary="A form of the second dialect stands here: `case`, `vars`, `sink`, `retry`, `loop.collection`.",
    why="In the second dialect one `case` mixed routing, writes and control, and `retry` hid loops. Today the server routes "
    "by arcs and the worker acts by task policies, so that both can be checked, drawn and replayed.",
    fix="""Write the form that replaces it:

| second dialect | today |
|---|---|
| `case:` with `then: { next: … }` | `next: { arcs: [{ step: …, when: … }] }` |
| `case:` with `then: { sink: … }`, `sink:`, `save:` | a task of its own at the end of the pipeline |
| `vars: { x: … }` | `set: { ctx.x: … }`, read as `ctx.x` |
| `retry:` | `spec.policy.rules` on the task: `then: { do: retry, attempts: … }`, for pages `do: jump` |
| `when:` on a step | `spec.policy.admit.rules` |
| `loop: { collection, element, max_concurrency }` | `loop: { in, iterator, spec: { max_in_flight } }` |
| `result: { as, collect, sink }` | `set: { ctx.x: … }`, and a task for the write |
| `eval:`, `expr:` | `spec.policy.rules` with `when` |

The meaning stays the same.""",
    bad=GOOD.replace('set: { ctx.total: "{{ output.data.total }}" }', 'vars: { total: "{{ result.total }}" }'),
    good=GOOD,
    check=check,
)
