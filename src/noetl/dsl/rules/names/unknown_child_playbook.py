"""NOE209 reports a child playbook whose path looks like a typing mistake."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at
from noetl.dsl.checking.typos import slip_of
from noetl.dsl.tree.playbook import Value

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: month_end, path: billing/month_end }
workload: { api: "http://127.0.0.1:8080", month: 1 }
workflow:
  - step: close
    tool: { kind: http, method: POST, url: "{{ workload.api }}/close/{{ workload.month }}" }
    next:
      arcs:
        - step: next_month
          when: "{{ workload.month < 12 }}"
  - step: next_month
    tool:
      - child:
          kind: playbook
          path: billing/month_end
          args: { month: "{{ workload.month + 1 }}" }
"""
_FILES = (".yaml", ".yml", ".json")


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        for task in step.tasks:
            path = task.fields.get("path")
            if task.kind == "playbook" and path is not None:
                yield from _check_path(path, subject)


def _check_path(path: Value, subject: CheckContext) -> Iterator[Finding]:
    own = subject.playbook.path
    name = path.data
    if path.at is None or not isinstance(name, str) or "{{" in name or name == own:
        return
    if subject.catalog is not None and name in subject.catalog:
        return
    meant = slip_of(name, {own, *(subject.catalog or ())})
    suggestion = f" Did you mean '{meant}'?" if meant else ""
    if subject.catalog is not None and name.endswith(_FILES):
        message = f"There is no file '{name}' for this child playbook."
        yield at(path.at, message + suggestion, "Correct the path; it is relative to the folder of this playbook.")
    elif meant:
        message = f"There is no child playbook '{name}' here."
        fix = "Use the `metadata.path` of the child, or register a playbook under this path before the run."
        yield at(path.at, message + suggestion, fix)


RULE = Rule(
    code="NOE209",
    name="unknown-child-playbook",
    severity="warning",
    summary="A task calls a child playbook by a path that looks like a typing mistake.",
    why=(
        "The child is looked up when the step runs, perhaps hours after the start, and an unknown path fails there. This "
        "rule reports a path only if a playbook of nearly the same path exists, or if it names a file that does not exist: "
        "other children may be registered on the server."
    ),
    fix="Write the child's `metadata.path`, or for a local run the path of the file relative to this playbook.",
    bad=GOOD.replace("          path: billing/month_end", "          path: billing/moth_end"),
    good=GOOD,
    check=check,
)
