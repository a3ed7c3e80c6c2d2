"""NOE327 reports `${{ … }}`, which other tools use for templates."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.braces import dollars
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: fetch
    tool: { kind: http, url: "{{ workload.api }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for site in subject.sites:
        if site.template is None:
            continue
        text = site.template.source
        is_whole = text.rstrip().endswith("}}") and text.count("{{") == 1
        for offset in dollars(text):
            if (is_whole and not text[:offset].strip()) or _is_no_price(site, text, offset):
                message = "The `$` before `{{` stays in the text: the value is `$` and the result, as text."
                fix = "Remove the `$`. Where you mean a dollar sign, write `{{ '$' ~ … }}`."
                yield inside(subject, site, offset, 3, message, fix)


def _is_no_price(site: TemplateSite, text: str, offset: int) -> bool:
    """Return whether the `$` is no currency: it begins a value, path or variable."""
    if site.is_condition or (site.task is not None and site.task.kind == "shell"):
        return True
    return text[offset - 1 : offset] == "/"


RULE = Rule(
    code="NOE327",
    name="dollar-before-braces",
    severity="warning",
    summary="A template is written with a dollar sign: `${{ … }}`.",
    why="Templates are written `{{ … }}`. The `$` becomes part of the text, so `${{ workload.n }}` is the text `$5`, "
    "never the number 5. A price in a sentence is not reported.",
    fix="Remove the `$`. Where you mean a dollar sign, write `{{ '$' ~ workload.price }}`.",
    bad=GOOD.replace('"{{ workload.api', '"${{ workload.api'),
    good=GOOD,
    check=check,
)
