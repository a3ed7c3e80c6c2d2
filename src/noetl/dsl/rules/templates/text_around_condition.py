"""NOE326 reports a condition that is partly outside the braces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside

GOOD = example("""\
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
""")
_BRACES = re.compile(r"\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
_TEXT = re.compile(r"\S(?:.*\S)?")


def check(subject: CheckContext) -> Iterator[Finding]:
    for site in subject.sites:
        template = site.template
        if template is None or not site.is_condition or template.kind != "text" or "{%" in template.source:
            continue
        outside = _TEXT.search(_BRACES.sub(lambda braces: " " * len(braces.group()), template.source))
        start = outside.start() if outside else 0
        length = len(outside.group().split("  ")[0]) if outside else 1
        message = (
            "A part of this condition is outside the braces, so it renders to text, which is neither true nor false."
        )
        yield inside(
            subject, site, start, length, message, "Put all of it into one pair of braces: `\"{{ a == 'x' and b }}\"`."
        )


RULE = Rule(
    code="NOE326",
    name="text-around-condition",
    severity="error",
    summary="A part of a condition is outside `{{ … }}`.",
    why=(
        "Each pair of braces is replaced by its value and the rest stays text: `{{ a }} == 'x'` becomes the text `5 == 'x'`, "
        "which is not evaluated. The rule or arc never matches."
    ),
    fix="Put the whole condition into one pair of braces.",
    bad=GOOD.replace(
        "{{ workload.mode == 'full' or workload.force }}", "{{ workload.mode == 'full' }} or {{ workload.force }}"
    ),
    good=GOOD,
    check=check,
)
