"""NOE309 reports a scope that does not exist where it is read."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.references import Reference
from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import at_element
from noetl.dsl.scopes import AFTER_STEP, IN_PIPELINE, WHERE
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: count, path: examples/count }
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: count
    tool:
      - fetch: { kind: http, url: "{{ workload.api }}/rows" }
      - size:
          kind: python
          args: { rows: "{{ _prev.data }}" }
          code: result = len(rows)
"""
_OUTCOMES = ("outcome", "output")


def check(subject: Subject) -> Iterator[Found]:
    for reference in subject.references:
        if reference.means == ("misplaced",) and reference.name != "keychain" and not reference.read.guarded:
            name = reference.name
            message = f"`{name}` does not exist here. It exists {WHERE[name]}."
            yield at_element(subject, reference, 0, message, _instead(reference))


def _instead(reference: Reference) -> str:
    name, site = reference.name, reference.site
    if site.in_workbook:
        return "Pass the value in `input` where the task is called, and read it here as `input.<name>`."
    if name in _OUTCOMES and site.role == "task_input":
        return "Read the result of the task before as `_prev`, or that of any earlier task by its label."
    if name == "_prev" and site.role in AFTER_STEP:
        return "Read the result of the step as `outcome.result`, or by the step's name."
    if name == "event" and site.role in IN_PIPELINE:
        return "A task sees its own `outcome`; what the whole step came to is routed by its arcs."
    if name == "iter" and site.role in AFTER_STEP:
        return "The loop is over here: read `outcome.result.results`, one entry for each item."
    if name in _OUTCOMES and site.role == "admit":
        return "Read the result of an earlier step by its name, or what was written to `ctx`."
    return "Read something that exists here, or move the template to where this scope exists."


RULE = Rule(
    code="NOE309",
    name="misplaced-scope",
    group="templates",
    severity="error",
    summary="A template reads a scope that does not exist at its place.",
    why=(
        "Some scopes exist for a part of the run only: `outcome` after a task, `event` while routing, `_prev` inside a "
        "pipeline, `iter` inside a loop. Elsewhere they are undefined."
    ),
    fix="Read what exists at this place, or move the template. The message says where the scope exists.",
    bad=GOOD.replace("{{ _prev.data }}", "{{ outcome.result.data }}"),
    good=GOOD,
    check=check,
)
