"""NOE408 reports a task policy that ignores some errors."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.flow import ERROR, Flow
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import key_at
from noetl.dsl.rules.graph.policies import policies
from noetl.dsl.tree.playbook import TaskRule

GOOD = example("""\
workflow:
  - step: fetch
    tool:
      - get:
          kind: http
          url: "https://example.org/data"
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and outcome.http.status == 503 }}"
                  then: { do: retry, attempts: 5, delay: 2 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
""")
BAD = GOOD.replace(
    "                - when: \"{{ outcome.status == 'error' }}\"\n                  then: { do: fail }\n", ""
)
_HARMLESS = frozenset({"noop", "sleep"})
_EITHER_WAY = (ERROR._replace(retryable=True), ERROR._replace(retryable=False))


def check(subject: CheckContext) -> Iterator[Finding]:
    for task, rules in policies(subject):
        if task.on_unmatched != "continue" or task.kind in _HARMLESS or task.kind not in subject.kinds:
            continue
        if _covers_errors(subject.flow, rules):
            continue
        place = key_at(task.at, "spec", "policy", "rules")
        if place is not None:
            yield at(
                place,
                f"An error of task '{task.label}' that matches none of these rules is ignored: the pipeline continues "
                "as if the task had succeeded.",
                "Add a last rule for the other errors: `- when: \"{{ outcome.status == 'error' }}\"` with "
                "`then: { do: fail }`, or set `on_unmatched: fail` next to `rules`.",
            )


def _covers_errors(flow: Flow, rules: tuple[TaskRule, ...]) -> bool:
    """Return whether every error matches a rule, or a rule does not parse."""
    if any(rule.is_else or flow.is_unreadable(rule.when) for rule in rules):
        return True
    if any(flow.holds(rule.when, ERROR) is True for rule in rules):
        return True
    return all(any(flow.holds(rule.when, case) is True for rule in rules) for case in _EITHER_WAY)


RULE = Rule(
    code="NOE408",
    name="swallowed-error",
    severity="warning",
    summary="A task policy has no rule for some errors, and no `else`.",
    why=(
        "A task with a policy follows only its rules. An outcome that matches no rule *continues*, even an error: the next "
        "task runs with the result of an earlier one, and the run is reported as a success."
    ),
    fix=(
        "End the rules with one for the remaining errors (`when: \"{{ outcome.status == 'error' }}\"`, `then: {do: fail}`), "
        "with an `else`, or set `on_unmatched: fail`. To ignore errors, write it: `- else: {then: {do: continue}}`."
    ),
    bad=BAD,
    good=GOOD,
    check=check,
)
