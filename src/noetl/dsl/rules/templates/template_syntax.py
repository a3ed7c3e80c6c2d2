"""NOE301 reports a syntax error in a template."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside

GOOD = example("""\
workload: { who: world }
workflow:
  - step: greet
    tool: { kind: noop, message: "Hello, {{ workload.who | upper }}!" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for site in subject.sites:
        if site.error is not None:
            message = f"Syntax error in this template: {site.error.message.rstrip('.')}."
            fix = site.error.fix or "Correct the template; `noetl explain NOE301` shows an example."
            yield inside(subject, site, site.error.offset or 0, 1, message, f"{fix[0].upper()}{fix[1:].rstrip('.')}.")


RULE = Rule(
    code="NOE301",
    name="template-syntax",
    severity="error",
    summary="A template has a syntax error.",
    why="The template cannot be evaluated, so the step that uses it fails.",
    fix=(
        "Check the marked position. Common mistakes: a missing `}}`, `=` for `==`, `&&` for `and`, an unclosed quote. "
        "Put text that only looks like a template into `{% raw %}…{% endraw %}`."
    ),
    bad=GOOD.replace("| upper }}", "| upper }"),
    good=GOOD,
    check=check,
)
