"""NOE414 reports a rule of a policy or gate that can never decide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from noetl.dsl.analysis.flow import ERROR, OK, Case, Flow
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode, Node
from noetl.dsl.rules.graph.policies import policies
from noetl.dsl.tree.playbook import AdmitRule, TaskRule

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
                - when: "{{ outcome.status == 'error' and outcome.http.status == 404 }}"
                  then: { do: break }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
""")
_HEAD, _NARROW, _BROAD = (part.rstrip("\n") for part in re.split(r"\n(?=                - when)", GOOD))
BAD = f"{_HEAD}\n{_BROAD}\n{_NARROW}\n"
_OUTCOMES = (OK, ERROR)


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        if step.admit and len(step.admit) > 1:
            yield from _dead(subject.flow, step.admit, (OK,))
    for _, rules in policies(subject):
        if len(rules) > 1:
            yield from _dead(subject.flow, rules, _OUTCOMES)


def _dead(flow: Flow, rules: Sequence[AdmitRule | TaskRule], cases: tuple[Case, ...]) -> Iterator[Finding]:
    if any(rule.when is not None and rule.when.at is None for rule in rules):
        return  # NOE117 reports a rule without `when` and `else`
    certain: dict[Case, int] = {}  # the first rule that certainly matches a case
    conditions: dict[str, int] = {}  # the first rule with a condition
    for number, rule in enumerate(rules):
        if rule.is_else:
            return  # NOE118 reports rules after an `else`; an unused `else` is harmless
        answers = {case: flow.holds(rule.when, case) for case in cases}
        possible = [case for case, answer in answers.items() if answer is not False]
        place = _condition(rule.at)
        condition = repr(rule.when.data if rule.when is not None else None)
        winner = _winner([certain.get(case) for case in possible], conditions.get(condition))
        conditions.setdefault(condition, number)
        for case, answer in answers.items():
            if answer is True:
                certain.setdefault(case, number)
        if place is None or (possible and winner is None):
            continue
        if flow.is_unreadable(rule.when) or flow.is_constant(rule.when):
            continue  # another rule reports the condition
        if not possible:
            yield at(
                place,
                "This rule never matches: its condition is false for every outcome.",
                "Correct the condition, or remove the rule.",
            )
        elif winner is not None and not _is_harmless(rules[winner], rule):
            yield at(
                place,
                f"This rule never decides: rule {winner + 1} above it matches first.",
                "Put the rule with the narrower condition first: rules are evaluated from the top and the first match decides.",
            )


def _winner(takers: Sequence[int | None], same: int | None) -> int | None:
    """Return the first of the rules that together take all cases, or the same rule."""
    known = [taker for taker in takers if taker is not None]
    return min(known) if known and len(known) == len(takers) else same


def _is_harmless(winner: AdmitRule | TaskRule, rule: AdmitRule | TaskRule) -> bool:
    """Return whether the rule is redundant but harmless: `fail` after `retry`."""
    if isinstance(winner, TaskRule) and isinstance(rule, TaskRule):
        return winner.then.do == "retry" and rule.then.do == "fail"
    return False


def _condition(rule: Node | None) -> Node | None:
    return rule.get("when") if isinstance(rule, MapNode) else None


RULE = Rule(
    code="NOE414",
    name="dead-rule",
    severity="warning",
    summary="A rule of a task policy or an admission gate can never decide.",
    why=(
        "Rules are evaluated from the top and the first match decides. A broad condition above a narrow one matches every "
        "case of the narrow one."
    ),
    fix="Order the rules from narrow to broad, and correct contradictory conditions.",
    bad=BAD,
    good=GOOD,
    check=check,
)
