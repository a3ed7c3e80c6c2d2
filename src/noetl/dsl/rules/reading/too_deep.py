"""NOE009 reports values that nest more than a hundred levels deep."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: nest, path: examples/nest }
workload:
  nest: [[1]]
workflow:
  - step: report
    tool:
      kind: noop
      result: "{{ workload.nest }}"
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "Flatten the value, or write it as a JSON text and read it with `fromjson`.", "too-deep")


RULE = Rule(
    code="NOE009",
    name="too-deep",
    group="reading",
    severity="error",
    summary="Values nest more than 100 levels deep.",
    why="No playbook needs it, and a file that does it can bring down programs that read it.",
    fix="Flatten the value. A deep document can travel as a JSON text and be opened with `fromjson`.",
    bad=GOOD.replace("[[1]]", "[" * 101 + "1" + "]" * 101),
    good=GOOD,
    check=check,
)
