"""NOE416 reports a task policy that fails after every success."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analyze import OK, Flow
from noetl.dsl.nodes import MapNode
from noetl.dsl.playbook import TaskRule
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.graph.policies import policies
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workflow:
  - step: fetch
    tool:
      - get:
          kind: http
          url: "https://example.org/data"
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and outcome.error.retryable }}"
                  then: { do: retry, attempts: 3 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
"""
BAD = GOOD.replace(
    "                - when: \"{{ outcome.status == 'error' }}\"\n                  then: { do: fail }\n",
    "                - else:\n                    then: { do: fail }\n",
)


def check(subject: Subject) -> Iterator[Found]:
    for task, rules in policies(subject):
        rule = _that_fails(subject.flow, rules)
        # A single rule, or a task that does nothing, is how a failure is raised on purpose.
        if rule is not None and rule.then.do == "fail" and (len(rules) == 1 or task.kind == "noop"):
            continue
        then = rule.then.at if rule else None
        place = then.get("do") if isinstance(then, MapNode) else None
        if place is not None:
            fails = "fails even when it has succeeded"
            if rule and rule.then.do == "retry":
                fails = "is run again even when it has succeeded, and fails after the last attempt"
            yield at(
                place,
                f"Task '{task.label}' {fails}: no rule lets an outcome with status 'ok' go on.",
                "Ask for the error, `when: \"{{ outcome.status == 'error' }}\"`, or let success go on first: "
                "`- when: \"{{ outcome.status == 'ok' }}\"` with `then: { do: continue }`.",
            )


def _that_fails(flow: Flow, rules: tuple[TaskRule, ...]) -> TaskRule | None:
    """Give the rule that is certain to fail a success; None where another may let it go on."""
    for rule in rules:
        answer = flow.holds(rule.when, OK)
        if flow.is_unreadable(rule.when) or (answer is not False and rule.then.do not in ("fail", "retry")):
            return None
        if answer is True:
            told = flow.template(rule.when) is not None and flow.is_constant(rule.when)
            return None if told else rule
    return None


RULE = Rule(
    code="NOE416",
    name="never-succeeds",
    group="graph",
    severity="error",
    summary="A task policy has a way to go on for no outcome at all: even a success fails.",
    why=(
        "Rules and `else` see every outcome, not only errors. An `else` with `do: fail` behind rules for certain errors "
        "therefore fails each success as well, and one with `do: retry` repeats it until no attempt is left."
    ),
    fix="Put the condition `outcome.status == 'error'` on the rule that fails or retries; what no rule matches continues.",
    bad=BAD,
    good=GOOD,
    check=check,
)
