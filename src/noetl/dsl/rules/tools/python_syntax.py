"""NOE508 reports Python code that does not compile."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.locate import locate
from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.tools.snippets import Refusal, read
from noetl.dsl.rules.tools.unread import is_unread
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
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
"""


def check(subject: Subject) -> Iterator[Found]:
    for code in subject.code:
        if code.language != "python" or is_unread(subject, code.node):
            continue
        refusal = read(code.node.text)
        if isinstance(refusal, Refusal):
            start = locate(subject.source, code.node, refusal.offset)
            yield Found(start, start + 1, f"The Python code does not compile: {refusal.message}.", _fix(code.node.text))


def _fix(text: str) -> str:
    if "{%" in text:
        return "The code is no template. Pass values in through `input`, and use Python's own `if` and `for`."
    return (
        "Correct the line, or the one before it; brackets and quotes that are open and `:` that are missing are common."
    )


RULE = Rule(
    code="NOE508",
    name="python-syntax",
    group="tools",
    severity="error",
    summary="The code of a python task is not valid Python.",
    why="The task fails each time it runs, after everything before it has run.",
    fix=(
        "Correct the code. It is read by the Python that runs NoETL. A `return` at the top level is fine, templates are not: "
        "values come in through `input`."
    ),
    bad=GOOD.replace("for order in orders:", "for order in orders"),
    good=GOOD,
    check=check,
)
