"""NOE009 reports values that nest more than a hundred levels deep."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workload:
  nest: [[1]]
workflow:
  - step: report
    tool:
      kind: noop
      result: "{{ workload.nest }}"
""")

RULE = Rule(
    code="NOE009",
    name="too-deep",
    severity="error",
    summary="Values nest more than 100 levels deep.",
    why="No playbook needs this depth, and such a file can crash programs that read it.",
    fix="Flatten the value, or pass the document as JSON text and parse it with `fromjson`.",
    bad=GOOD.replace("[[1]]", "[" * 101 + "1" + "]" * 101),
    good=GOOD,
    check=problem_check("too-deep", fix="Flatten the value, or write it as JSON text and parse it with `fromjson`."),
)
