"""NOE324 reports a condition that is always true or always false."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl.dsl.analysis.scopes import SCOPES
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside
from noetl.dsl.reading.ranges import Offsets
from noetl.expr import Template

GOOD = example("""\
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
""")
# An explicit `true` matches everything that is left, including failures.
_MEANT = "true"
_QUOTED_NAME = re.compile(rf"['\"](?:{'|'.join(SCOPES)})\.\w")
_JOINT = re.compile(r"\b(?:and|or|if|else)\b")


def check(subject: CheckContext) -> Iterator[Finding]:
    for site in subject.sites:
        template = site.template
        if template is None or not site.is_condition or template.kind != "expression" or template.problems:
            continue
        inner = template.source.strip().strip("{}-+").strip()
        truth = template.decide({}) if inner.lower() != _MEANT and _may_be_constant(template) else None
        if truth is None:
            continue
        word = "true" if truth else "false"
        reason = "whatever values it reads" if template.reads else "because it reads no value"
        message = f"This condition is always {word}, {reason}."
        fix = f"Write `when: {word}` if you mean that."
        if template.reads and truth:
            fix += " Otherwise: `x == 'a' or 'b'` is always true; write `x in ['a', 'b']`."
        elif _QUOTED_NAME.search(inner):
            fix += " Otherwise: a name in quotes is text; write it without quotes."
        start = template.source.index(inner)
        yield inside(subject, site, start, len(inner), message, fix)


def _may_be_constant(template: Template) -> bool:
    """Return whether some part of the condition reads no value."""
    joints = list(_JOINT.finditer(template.source))
    starts = [0, *(joint.end() for joint in joints)]
    ends = [*(joint.start() for joint in joints), len(template.source)]
    reads = Offsets(read.offset for read in template.reads)
    return not all(map(reads.any_in, starts, ends))


RULE = Rule(
    code="NOE324",
    name="constant-condition",
    severity="warning",
    summary="A condition is always true or always false.",
    why="It decides nothing, so probably the condition is wrong.",
    fix=(
        "Compare with a value that changes. A common mistake is `x == 'a' or 'b'`, which is always true: write "
        "`x in ['a', 'b']`. To always or never match, write `when: true` or `when: false`."
    ),
    bad=GOOD.replace("or workload.mode == 'complete'", "or 'complete'"),
    good=GOOD,
    check=check,
)
