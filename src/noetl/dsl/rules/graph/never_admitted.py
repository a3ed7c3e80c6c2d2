"""NOE402 reports an admission gate that never admits a token."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import key_at
from noetl.dsl.reading.ranges import Offsets
from noetl.dsl.tree.playbook import Step

GOOD = example("""\
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
""")
BAD = GOOD.replace("            - else:\n                then: { allow: true }\n", "")
_GATE_LEVELS = frozenset({"admit_policy", "admit_rule", "admit_then", "admit_else"})


def check(subject: CheckContext) -> Iterator[Finding]:
    gated = [step for step in subject.playbook.workflow if step.admit]
    if not gated:
        return
    misshapen = Offsets(finding.node.start for finding in subject.shape if finding.level.name in _GATE_LEVELS)
    for step in gated:
        place = key_at(step.at, "spec", "policy", "admit")
        gate = step.admit_at
        if place is None or gate is None or misshapen.any_in(gate.start, gate.end):
            continue
        misplaced_else = any(rule.is_else for rule in (step.admit or ())[:-1])  # NOE118 reports it
        if not misplaced_else and not subject.flow.admission(step).may_allow:
            yield at(place, *_texts(step))


def _texts(step: Step) -> tuple[str, str]:
    if any(rule.allow for rule in step.admit or ()):
        reason = "no rule that allows can ever match"
        fix = "Correct the condition of the rule that allows, or remove the rule above it that always denies."
    elif any(rule.is_else for rule in step.admit or ()):
        reason = "every rule denies"
        fix = "Write `then: { allow: true }` in one of the rules, or remove the gate."
    else:
        reason = "every rule denies, and a token that no rule matches is denied too"
        fix = "End the rules with `- else: { then: { allow: true } }`."
    return f"Step '{step.name}' never starts: in its admission gate {reason}.", fix


RULE = Rule(
    code="NOE402",
    name="never-admitted",
    severity="error",
    summary="The admission gate of a step never admits a token.",
    why=(
        "Rules are evaluated from the top and the first match decides. If no rule matches, the token is denied. A gate with "
        "only `allow: false` therefore stays closed: tokens park at it and the execution waits forever."
    ),
    fix="Add a rule that allows, usually as the last one: `- else: { then: { allow: true } }`.",
    bad=BAD,
    good=GOOD,
    check=check,
)
