"""NOE507 reports `| raw` in SQL, which inserts a value unescaped."""

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
    summary="A template in SQL is marked `| raw`.",
    why=(
        "Templates in SQL become literals, escaped text or quoted names, depending on their position, so a value cannot "
        "change the statement. `| raw` turns this off: a value such as `1; DROP TABLE orders` becomes part of the statement."
    ),
    fix=(
        "Remove `| raw`, or bind the value with `params`. To choose between fixed pieces of SQL, write them in the playbook: "
        "`{% if workload.newest_first %}DESC{% else %}ASC{% endif %}`."
    ),
    bad=GOOD.replace("workload.table }}", "workload.table | raw }}"),
    good=GOOD,
    check=check,
)
