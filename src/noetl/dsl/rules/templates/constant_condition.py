"""NOE324 reports a condition that does not depend on anything."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule, inside
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: choose, path: examples/choose }
workload: { mode: full }
workflow:
  - step: choose
    next:
      spec: { mode: inclusive }
      arcs:
        - step: archive
          when: "{{ workload.mode == 'full' or workload.mode == 'complete' }}"
        - step: report
  - step: archive
    tool: { kind: noop }
  - step: report
    tool: { kind: noop }
"""
# The author says it in so many words.
_MEANT = frozenset({"true", "false"})


def check(subject: Subject) -> Iterator[Found]:
    for site in subject.sites:
        template = site.template
        if template is None or not site.is_condition or template.kind != "expression" or template.problems:
            continue
        inner = template.source.strip().strip("{}-+").strip()
        truth = None if inner.lower() in _MEANT else template.decide({})
        if truth is None:
            continue
        word = "true" if truth else "false"
        message = f"This condition is always {word}, whatever it reads."
        fix = f"Write `when: {word}` if that is meant."
        if template.reads and truth:
            fix += " If not: `x == 'a' or 'b'` is always true; write `x in ['a', 'b']`."
        start = template.source.index(inner)
        yield inside(subject, site, start, len(inner), message, fix)


RULE = Rule(
    code="NOE324",
    name="constant-condition",
    group="templates",
    severity="warning",
    summary="A condition is always true or always false.",
    why="It decides nothing, so either it or what depends on it is not what was meant.",
    fix=(
        "Compare with something that changes. A classic is `x == 'a' or 'b'`, which is always true: write `x in ['a', 'b']`. "
        "A rule that shall always or never match says so without a template: `when: true`."
    ),
    bad=GOOD.replace("or workload.mode == 'complete'", "or 'complete'"),
    good=GOOD,
    check=check,
)
