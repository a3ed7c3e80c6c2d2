"""NOE416 reports a task policy that fails every success."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.flow import OK, Flow
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode
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
                - when: "{{ outcome.status == 'error' and outcome.error.retryable }}"
                  then: { do: retry, attempts: 3 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
""")
BAD = GOOD.replace(
    "                - when: \"{{ outcome.status == 'error' }}\"\n                  then: { do: fail }\n",
    "                - else:\n                    then: { do: fail }\n",
)


def check(subject: CheckContext) -> Iterator[Finding]:
    for task, rules in policies(subject):
        rule = _failing_rule(subject.flow, rules)
        # A single rule, or a noop task, raises a failure on purpose.
        if rule is not None and rule.then.do == "fail" and (len(rules) == 1 or task.kind == "noop"):
            continue
        then = rule.then.at if rule else None
        place = then.get("do") if isinstance(then, MapNode) else None
        if place is not None:
            fails = "fails even when it succeeds"
            if rule and rule.then.do == "retry":
                fails = "runs again even when it succeeds, and fails after the last attempt"
            yield at(
                place,
                f"Task '{task.label}' {fails}: no rule continues after an outcome with status 'ok'.",
                "Match only errors, `when: \"{{ outcome.status == 'error' }}\"`, or continue on success first: "
                "`- when: \"{{ outcome.status == 'ok' }}\"` with `then: { do: continue }`.",
            )


def _failing_rule(flow: Flow, rules: tuple[TaskRule, ...]) -> TaskRule | None:
    """Return the rule that certainly fails a success, or None."""
    for rule in rules:
        answer = flow.holds(rule.when, OK)
        if flow.is_unreadable(rule.when) or (answer is not False and rule.then.do not in ("fail", "retry")):
            return None
        if answer is True:
            reported = flow.template(rule.when) is not None and flow.is_constant(rule.when)  # by NOE324
            return None if reported else rule
    return None


RULE = Rule(
    code="NOE416",
    name="never-succeeds",
    severity="warning",
    summary="A task policy never continues: even a success fails.",
    why=(
        "Rules and `else` match every outcome, not only errors. An `else` with `do: fail` after rules for certain errors "
        "therefore fails every success too, and one with `do: retry` repeats it until no attempt is left."
    ),
    fix="Add the condition `outcome.status == 'error'` to the rule that fails or retries. Unmatched outcomes continue.",
    bad=BAD,
    good=GOOD,
    check=check,
)
