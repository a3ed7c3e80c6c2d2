"""NOE320 reports a read of an argument that nothing binds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from noetl.dsl.analysis.references import Reference
from noetl.dsl.analysis.scopes import binds, input_names
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: fetch
    tool: { kind: http, url: "{{ workload.api }}/rows" }
    next:
      arcs:
        - step: store
          args: { rows: "{{ fetch.data.rows }}" }
  - step: store
    tool: { kind: noop, result: "{{ args.rows }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    live = subject.net.live() if subject.net_is_whole else 0
    of_tasks: dict[int, set[str]] = {}  # inputs of the tasks of a step
    for reference in subject.references:
        if reference.name not in ("args", "input") or reference.means != ("scope",) or reference.read.guarded:
            continue
        key = reference.key
        if key is None or key in subject.obscured or not _is_known(reference, subject, live):
            continue
        step = reference.site.step
        if step is not None and id(step) not in of_tasks:
            of_tasks[id(step)] = {name for task in step.tasks for name in task.input}
        if not binds(reference.site, subject.names, key) and key not in of_tasks.get(id(step), ()):
            yield _report(subject, reference, key)


def _is_known(reference: Reference, subject: CheckContext, live: int) -> bool:
    """Return whether this playbook contains everything that binds arguments here."""
    site = reference.site
    if site.in_workbook:
        return site.task is not None and site.task.label in subject.names.workbook
    if site.step is None or site.step.name in subject.names.compensations:
        return False
    return bool(live >> subject.net.index[site.step.name] & 1) if subject.net_is_whole else False


def _report(subject: CheckContext, reference: Reference, key: str) -> Finding:
    name, step = reference.name, reference.site.step
    meant = subject.suggestions.nearest(key, partial(input_names, reference.site, subject.names))
    message = f"Nothing binds `{name}.{key}` here."
    if meant:
        message += f" Did you mean '{meant}'?"
    if key in subject.names.workload:
        fix = f"Read the payload of the run from the workload: `workload.{key}`."
    elif step is None:
        fix = f"Pass it where the task is called: `input: {{ {key}: … }}`."
    else:
        fix = f"Bind it on an arc to '{step.name}': `args: {{ {key}: … }}`, or read another scope."
    return at_element(subject, reference, 1, message, fix)


RULE = Rule(
    code="NOE320",
    name="unbound-argument",
    severity="warning",
    summary="A template reads a key of `args` or `input` that nothing binds.",
    why=(
        "`args` holds the values that arcs bind for this step, and `input` adds the inputs of the step and the task. Any other "
        "key is undefined in every run."
    ),
    fix="Bind the key on an arc to the step, or in its `input`. The payload of a run is in `workload`.",
    bad=GOOD.replace("{{ args.rows }}", "{{ args.row }}"),
    good=GOOD,
    check=check,
)
