"""NOE508 reports Python code that does not compile."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.reading.source_map import locate
from noetl.dsl.rules.tools.python_snippets import Refusal, read

GOOD = example("""\
workload: { orders: [3, 4] }
workflow:
  - step: add_up
    tool:
      kind: python
      args: { orders: "{{ workload.orders }}" }
      code: |
        total = 0
        for order in orders:
            total += order
        return {"total": total}
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for code in subject.code:
        if code.language != "python" or subject.is_misread(code.node):
            continue
        refusal = read(code.node.text)
        if isinstance(refusal, Refusal):
            start = locate(subject.source, code.node, refusal.offset)
            yield Finding(
                start, start + 1, f"The Python code does not compile: {refusal.message}.", _fix(code.node.text)
            )


def _fix(text: str) -> str:
    if "{%" in text:
        return "The code is not a template. Pass values through `input`, and use Python's own `if` and `for`."
    return "Correct this line or the one before it: look for an open bracket or quote, or a missing `:`."


RULE = Rule(
    code="NOE508",
    name="python-syntax",
    severity="error",
    summary="The code of a python task is not valid Python.",
    why="The task fails each time it runs, after everything before it has run.",
    fix=(
        "Correct the code. It is compiled by the Python that runs NoETL. A `return` at the top level is allowed; templates are "
        "not: pass values through `input`."
    ),
    bad=GOOD.replace("for order in orders:", "for order in orders"),
    good=GOOD,
    check=check,
)
