"""NOE109 reports a control action that stands outside a task policy."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.grammar.titles import title
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: ping, path: examples/ping }
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
"""
BAD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: ping, path: examples/ping }
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
"""
_GATE = "A gate only lets a token in or not: write `then: { allow: true }` or `then: { allow: false }`."
_TASK = "Move it to the task: `spec: { policy: { rules: [{ when: …, then: { do: … } }] } }`."


def check(subject: Subject) -> Iterator[Found]:
    for finding in subject.shape:
        if finding.kind == "control":
            level = finding.level.name
            here = title(finding.level)
            if finding.name == "rules":
                message = f"These rules act on a task's outcome (`do`), which {here} has not."
            else:
                message = f"'{finding.name}' acts on a task's outcome; it has no meaning in {here}."
            yield at(finding.node, message, _GATE if level.startswith("admit") else _TASK)


RULE = Rule(
    code="NOE109",
    name="action-outside-policy",
    group="shape",
    severity="error",
    summary="A control action (`do: retry`, `jump`, `break` …) stands outside the policy of a task.",
    why="Actions are taken by the worker that runs a pipeline, right after a task. Gates and routers decide on the server, "
    "where there is no task to retry or to jump to.",
    fix="Put the rule under `spec.policy.rules` of the task whose outcome it is about. "
    "A gate answers with `allow`, a router with its arcs.",
    bad=BAD,
    good=GOOD,
    check=check,
)
