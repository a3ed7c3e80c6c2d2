"""NOE319 reports a read of a workload key that the playbook does not declare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from noetl.dsl.analysis.references import Reference
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.typos import slip_of
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workload: { api_url: "http://127.0.0.1:8080" }
workflow:
  - step: fetch
    tool: { kind: http, url: "{{ workload.api_url }}/rows" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    declared = subject.names.workload
    for reference in subject.references:
        if reference.read.guarded:
            continue
        if reference.name == "workload" and reference.means == ("scope",) and reference.key is not None:
            key = reference.key
            if key in declared:
                yield from _below(subject, reference, 1)
            elif not subject.names.open_workload and key not in subject.obscured:
                message = f"`workload` declares no '{key}', which this template reads.{subject.suggestions.did_you_mean(key, declared)}"
                fix = f"Correct the name, declare `{key}` under `workload`, or guard the read with `default`."
                yield at_element(subject, reference, 1, message, fix)
        elif reference.means == ("workload",):
            yield from _below(subject, reference, 0)


def _below(subject: CheckContext, reference: Reference, depth: int) -> Iterator[Finding]:
    """Report typing mistakes further down the path."""
    path = reference.read.path
    value = subject.playbook.workload.get(str(path[depth]))
    data: Any = value.data if value else None
    for place in range(depth + 1, len(path)):
        key = path[place]
        if not isinstance(data, dict) or not isinstance(key, str):
            return
        if key not in data:
            meant = slip_of(key, (name for name in data if isinstance(name, str)))
            if meant:
                above = ".".join(map(str, path[:place]))
                message = f"`{above}` has no '{key}' in the workload. Did you mean '{meant}'?"
                yield at_element(subject, reference, place, message, "Correct the name, or declare the key.")
            return
        data = data[key]


RULE = Rule(
    code="NOE319",
    name="undeclared-workload-key",
    severity="warning",
    summary="A template reads a key that `workload` does not declare.",
    why=(
        "A payload may add keys that the playbook does not declare, but a run without that payload fails, and the playbook "
        "does not show what it needs. More often the key is a typing mistake."
    ),
    fix="Correct the name, or declare the key with a default value. Read an optional key with `default`.",
    bad=GOOD.replace("{{ workload.api_url }}", "{{ workload.api_ulr }}"),
    good=GOOD,
    check=check,
)
