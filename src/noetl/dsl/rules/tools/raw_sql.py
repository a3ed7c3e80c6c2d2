"""NOE507 reports `| raw` in SQL: text that goes to the database as it came."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workload: { table: orders, state: open }
workflow:
  - step: count
    tool:
      kind: postgres
      auth: pg_main
      query: SELECT count(*) FROM {{ workload.table }} WHERE state = '{{ workload.state }}'
"""
_RAW = re.compile(r"\|\s*(raw)\b")


def check(subject: Subject) -> Iterator[Found]:
    statements = {id(code.node) for code in subject.code if code.language == "sql"}
    if not statements:
        return
    for site in subject.sites:
        if site.template is None or id(site.node) not in statements:
            continue
        for match in _RAW.finditer(site.template.source):
            start = subject.locate(site, match.start(1))
            yield Found(
                start,
                start + len("raw"),
                "`| raw` pastes the value into the SQL as it came; whoever chooses the value can change the statement.",
                "Leave `| raw` out: values, quoted text and names are written safely by where they stand. "
                "Or bind the value with `params`.",
            )


RULE = Rule(
    code="NOE507",
    name="raw-sql",
    group="tools",
    severity="warning",
    summary="A template in SQL is marked `| raw`.",
    why=(
        "Templates in SQL become literals, escaped text or quoted names, depending on where they stand, so a value cannot "
        "change the statement. `| raw` turns that off: a value such as `1; DROP TABLE orders` becomes part of the program."
    ),
    fix=(
        "Remove `| raw`, or bind the value with `params`. To choose between fixed pieces of SQL, keep them in the playbook: "
        "`{% if workload.newest_first %}DESC{% else %}ASC{% endif %}`."
    ),
    bad=GOOD.replace("workload.table }}", "workload.table | raw }}"),
    good=GOOD,
    check=check,
)
