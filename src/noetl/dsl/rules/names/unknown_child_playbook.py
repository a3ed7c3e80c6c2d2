"""NOE209 reports a child playbook whose path is surely a slip."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.playbook import Value
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject
from noetl.dsl.typos import slip_of

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


def check(subject: Subject) -> Iterator[Found]:
    for step in subject.playbook.workflow:
        for task in step.tasks:
            path = task.fields.get("path")
            if task.kind == "playbook" and path is not None:
                yield from _child(path, subject)


def _child(path: Value, subject: Subject) -> Iterator[Found]:
    own = subject.playbook.path
    name = path.data
    if path.at is None or not isinstance(name, str) or "{{" in name or name == own:
        return
    if subject.catalog is not None and name in subject.catalog:
        return
    meant = slip_of(name, {own, *(subject.catalog or ())})
    suggestion = f" Did you mean '{meant}'?" if meant else ""
    if subject.catalog is not None and name.endswith(_FILES):
        message = f"The child playbook '{name}' is not a file beside this one."
        yield at(path.at, message + suggestion, "Correct the path; it is looked up from the folder of this playbook.")
    elif meant:
        message = f"The child playbook '{name}' is not among the playbooks found here."
        fix = "Use the `metadata.path` of the child, or register a playbook under this path before the run."
        yield at(path.at, message + suggestion, fix)


RULE = Rule(
    code="NOE209",
    name="unknown-child-playbook",
    group="names",
    severity="warning",
    summary="A child playbook is called by a path that looks like a slip.",
    why=(
        "The child is looked up when the step runs, perhaps hours after the start, and a path that nobody has fails there. "
        "Children that only a server knows are not reported: this rule speaks where a playbook of nearly the same path "
        "exists, or where the path is that of a file which does not."
    ),
    fix="Write the child's `metadata.path`, or for a local run the file's path from the folder of this playbook.",
    bad=GOOD.replace("          path: billing/month_end", "          path: billing/moth_end"),
    good=GOOD,
    check=check,
)
