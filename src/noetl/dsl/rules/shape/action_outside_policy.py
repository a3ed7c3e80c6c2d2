"""NOE109 reports a control action outside a task policy."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.grammar.titles import title

GOOD = example("""\
workflow:
  - step: ping
    tool:
      kind: http
      url: https://example.org/ping
      spec:
        policy:
          rules:
            - when: "{{ outcome.status == 'error' and outcome.error.retryable }}"
              then: { do: retry, attempts: 3, delay: 2 }
            - when: "{{ outcome.status == 'error' }}"
              then: { do: fail }
            - else: { then: { do: continue } }
""")
_POLICY = GOOD[GOOD.index("      spec:") :]
BAD = GOOD.replace(_POLICY, _POLICY.replace("\n  ", "\n").removeprefix("  "))  # two columns to the left: on the step
_GATE = "A gate only admits or parks a token: write `then: { allow: true }` or `then: { allow: false }`."
_TASK = "Move it to the task: `spec: { policy: { rules: [{ when: …, then: { do: … } }] } }`."


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "control":
            level = finding.level.name
            here = title(finding.level)
            if finding.name == "rules":
                message = f"These rules act on a task's outcome (`do`), but {here} has none."
            else:
                message = f"'{finding.name}' acts on a task's outcome; it has no effect in {here}."
            yield at(finding.node, message, _GATE if level.startswith("admit") else _TASK)


RULE = Rule(
    code="NOE109",
    name="action-outside-policy",
    severity="error",
    summary="A control action (`do: retry`, `jump`, `break` …) is outside the policy of a task.",
    why="The worker that runs a pipeline performs the actions, right after a task. Gates and routers run on the server, "
    "which has no task to retry or to jump to.",
    fix="Put the rule under `spec.policy.rules` of the task whose outcome it handles. "
    "A gate decides with `allow`, a router with its arcs.",
    bad=BAD,
    good=GOOD,
    check=check,
)
