"""NOE328 reports a `}}` that no `{{` begins."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.braces import stray_end
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside

GOOD = example("""\
workload: { name: Ada }
workflow:
  - step: greet
    tool: { kind: noop, message: "Hello {{ workload.name }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for site in subject.sites:
        offset = stray_end(site.template.source) if site.template else None
        if offset is not None:
            message = "This `}}` ends nothing: no `{{` stands before it, so the text is not a template."
            fix = "Write `{{` before the expression. For the two characters themselves, write `{{ '}}' }}`."
            yield inside(subject, site, offset, 2, message, fix)


RULE = Rule(
    code="NOE328",
    name="stray-braces",
    severity="warning",
    summary="A value has a `}}` without the `{{` before it.",
    why="Only text between `{{` and `}}` is evaluated. With one of them missing, the expression is passed on as text. "
    "Braces of JSON in the text are counted and not reported.",
    fix="Write `{{` before the expression. For the two characters themselves, write `{{ '}}' }}`.",
    bad=GOOD.replace("{{ workload.name", "{ workload.name"),
    good=GOOD,
    check=check,
)
