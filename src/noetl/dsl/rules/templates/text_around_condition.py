"""NOE326 reports a condition of which a part stands outside the braces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule, inside
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: choose, path: examples/choose }
workload: { mode: full, force: false }
workflow:
  - step: choose
    next:
      arcs:
        - step: all
          when: "{{ workload.mode == 'full' or workload.force }}"
        - step: some
  - step: all
    tool: { kind: noop }
  - step: some
    tool: { kind: noop }
"""
_BRACES = re.compile(r"\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
_TEXT = re.compile(r"\S(?:.*\S)?")


def check(subject: Subject) -> Iterator[Found]:
    for site in subject.sites:
        template = site.template
        if template is None or not site.is_condition or template.kind != "text" or "{%" in template.source:
            continue
        outside = _TEXT.search(_BRACES.sub(lambda found: " " * len(found.group()), template.source))
        start = outside.start() if outside else 0
        length = len(outside.group().split("  ")[0]) if outside else 1
        message = (
            "A part of this condition stands outside the braces, so it gives a text, which is neither true nor false."
        )
        yield inside(subject, site, start, length, message, "Put all of it in one pair: `\"{{ a == 'x' and b }}\"`.")


RULE = Rule(
    code="NOE326",
    name="text-around-condition",
    group="templates",
    severity="error",
    summary="A part of a condition stands outside `{{ … }}`.",
    why=(
        "Each pair of braces is replaced by its value and the rest stays text: `{{ a }} == 'x'` becomes `5 == 'x'` and is not "
        "evaluated any further. The rule or arc never matches."
    ),
    fix="Put the whole condition into one pair of braces.",
    bad=GOOD.replace(
        "{{ workload.mode == 'full' or workload.force }}", "{{ workload.mode == 'full' }} or {{ workload.force }}"
    ),
    good=GOOD,
    check=check,
)
