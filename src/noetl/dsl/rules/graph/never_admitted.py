"""NOE402 reports an admission gate that can never let a token in."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.playbook import Step
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.graph.places import key
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workload: { paused: false }
workflow:
  - step: load
    spec:
      policy:
        admit:
          rules:
            - when: "{{ workload.paused }}"
              then: { allow: false }
            - else:
                then: { allow: true }
    tool: { kind: noop }
"""
BAD = GOOD.replace("            - else:\n                then: { allow: true }\n", "")
_GATE_LEVELS = frozenset({"admit_policy", "admit_rule", "admit_then", "admit_else"})


def check(subject: Subject) -> Iterator[Found]:
    gated = [step for step in subject.playbook.workflow if step.admit]
    if not gated:
        return
    misshapen = [finding.node.start for finding in subject.shape if finding.level.name in _GATE_LEVELS]
    for step in gated:
        place = key(step.at, "spec", "policy", "admit")
        gate = step.admit_at
        if place is None or gate is None or any(gate.start <= start < gate.end for start in misshapen):
            continue
        misplaced_else = any(rule.is_else for rule in (step.admit or ())[:-1])  # has its own diagnostic
        if not misplaced_else and not subject.flow.admission(step).may_allow:
            yield at(place, *_texts(step))


def _texts(step: Step) -> tuple[str, str]:
    if any(rule.allow for rule in step.admit or ()):
        reason = "no rule that allows can ever match"
        fix = "Correct the condition of the rule that allows, or take out the rule above it that always denies."
    elif any(rule.is_else for rule in step.admit or ()):
        reason = "every rule denies"
        fix = "Give one of the rules `then: { allow: true }`, or remove the gate."
    else:
        reason = "every rule denies, and a token that no rule matches is denied too"
        fix = "End the rules with `- else: { then: { allow: true } }`."
    return f"Step '{step.name}' never starts: in its admission gate {reason}.", fix


RULE = Rule(
    code="NOE402",
    name="never-admitted",
    group="graph",
    severity="error",
    summary="The admission gate of a step can let no token in.",
    why=(
        "Rules are tried from the top and the first match decides. When rules are there and none matches, the token is "
        "denied. So a gate that holds only `allow: false` is closed for ever: tokens park before it and the execution "
        "waits without end."
    ),
    fix="Add a rule that allows, most often as the last one: `- else: { then: { allow: true } }`.",
    bad=BAD,
    good=GOOD,
    check=check,
)
