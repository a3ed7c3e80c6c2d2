"""NOE314 reports a read of a task's result before the task can have run."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.pipeline_order import PipelineOrders
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: load
    tool:
      - fetch: { kind: http, url: "{{ workload.api }}/rows" }
      - clean: { kind: python, args: { rows: "{{ fetch.data }}" }, code: result = rows }
      - store: { kind: noop, result: "{{ clean }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    orders = PipelineOrders()
    for reference in subject.references:
        site = reference.site
        step, task, name = site.step, site.task, reference.name
        if reference.means != ("label",) or reference.read.guarded or step is None or task is None:
            continue
        labels = subject.names.labels[step.name]
        if len(labels) != len(step.tasks) or task.label not in labels:
            continue
        order = orders.of(step)
        there, here = labels[name], order.place_of(task)
        own = there == here
        # After the task, its own label can be read like its outcome.
        if order.may_have_run(there, here) or (own and site.role != "task_input"):
            continue
        if own:
            message = f"Task '{name}' reads its own result in its inputs, before it has run."
            fix = "Read the previous task as `_prev`, or another task by its label."
        else:
            message = f"Task '{name}' comes after '{task.label}' in the pipeline, so it has no result yet."
            fix = f"Move '{name}' up, or guard the read: `{{{{ {name} | default(…) }}}}`."
        yield at_element(subject, reference, 0, message, fix)


RULE = Rule(
    code="NOE314",
    name="task-not-run-yet",
    severity="error",
    summary="A template reads the result of a task that cannot have run yet.",
    why="Tasks of a pipeline run from the top. A label has a result only after its task has run, and no jump leads back here.",
    fix="Reorder the tasks, or read a task above this one. If the result is optional, guard the read with `default`.",
    bad=GOOD.replace("{{ fetch.data }}", "{{ store.data }}"),
    good=GOOD,
    check=check,
)
