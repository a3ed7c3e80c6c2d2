"""NOE507 reports `| raw` in SQL, and SQL that is nothing but a value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example

GOOD = example("""\
workload: { table: orders, state: open }
workflow:
  - step: count
    tool:
      kind: postgres
      auth: pg_main
      query: SELECT count(*) FROM {{ workload.table }} WHERE state = '{{ workload.state }}'
""")
_RAW = re.compile(r"\|\s*(raw)\b")


def check(subject: CheckContext) -> Iterator[Finding]:
    statements = {id(code.node) for code in subject.code if code.language == "sql"}
    if not statements:
        return
    for site in subject.sites:
        if site.template is None or id(site.node) not in statements:
            continue
        if site.template.kind == "expression" and not _RAW.search(site.template.source):
            start = subject.locate(site, 0)
            yield Finding(
                start,
                start + len(site.template.source),
                "The whole statement is a value, so everyone who can set the value can run any SQL.",
                "Write the statement here and use templates for its values, or make sure that the value is trusted.",
            )
        for match in _RAW.finditer(site.template.source):
            start = subject.locate(site, match.start(1))
            yield Finding(
                start,
                start + len("raw"),
                "`| raw` inserts the value into the SQL unescaped, so the value can change the statement (SQL injection).",
                "Remove `| raw`: values, quoted text and names are then escaped according to their position. "
                "Or bind the value with `params`.",
            )


RULE = Rule(
    code="NOE507",
    name="raw-sql",
    severity="warning",
    summary="A template in SQL is marked `| raw`, or is the whole statement.",
    why=(
        "Templates in SQL become literals, escaped text or quoted names, depending on their position, so a value cannot "
        "change the statement. `| raw` turns this off: a value such as `1; DROP TABLE orders` becomes part of the statement. "
        "A field that is nothing but one template is the statement itself: there is no position to escape for."
    ),
    fix=(
        "Remove `| raw`, or bind the value with `params`. To choose between fixed pieces of SQL, write them in the playbook: "
        "`{% if workload.newest_first %}DESC{% else %}ASC{% endif %}`."
    ),
    bad=GOOD.replace("workload.table }}", "workload.table | raw }}"),
    good=GOOD,
    check=check,
)
