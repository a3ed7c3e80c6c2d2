"""NOE301 reports a template that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule, inside
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workload: { who: world }
workflow:
  - step: greet
    tool: { kind: noop, message: "Hello, {{ workload.who | upper }}!" }
"""


def check(subject: Subject) -> Iterator[Found]:
    for site in subject.sites:
        if site.error is not None:
            message = f"This template cannot be read: {site.error.message.rstrip('.')}."
            fix = site.error.fix or "Correct the template; `noetl explain NOE301` shows one that works."
            yield inside(subject, site, site.error.offset or 0, 1, message, f"{fix[0].upper()}{fix[1:].rstrip('.')}.")


RULE = Rule(
    code="NOE301",
    name="template-syntax",
    group="templates",
    severity="error",
    summary="A template has a syntax error.",
    why="It cannot be evaluated at all, so the step that needs it fails when its turn comes.",
    fix=(
        "Look at the marked place. Common slips: a missing `}}`, `=` for `==`, `&&` for `and`, a quote that is not closed. "
        "Text that only looks like a template can stand in `{% raw %}…{% endraw %}`."
    ),
    bad=GOOD.replace("| upper }}", "| upper }"),
    good=GOOD,
    check=check,
)
