"""NOE122 reports a step, label or iterator with a name that templates cannot read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Node

GOOD = example("""\
workflow:
  - step: fetch_orders
    tool: { kind: noop, result: { count: 3 } }
    next: report
  - step: report
    tool: { kind: noop }
""")
_NAME = re.compile(r"[^\W\d]\w*")
_WORDS = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "elif", "for", "true", "false", "none", "True", "False", "None"}
)


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        yield from _check_name("step", step.name, step.name_at)
        if step.loop:
            yield from _check_name("iterator", step.loop.iterator, step.loop.iterator_at)
    for task in subject.playbook.all_tasks:
        yield from _check_name("label", task.label, task.label_at)


def _check_name(what: str, name: str, node: Node | None) -> Iterator[Finding]:
    if node is None or "{" in name or not name.strip():
        return
    if name in _WORDS:
        message = f"The {what} '{name}' is a keyword of the template language, so no template can read it."
        yield at(node, message, "Choose another name.")
    elif not _NAME.fullmatch(name):
        meant = re.sub(r"\W+", "_", name).strip("_")
        meant = f"_{meant}" if meant[:1].isdigit() else meant
        example = f"`{{{{ {name}.field }}}}`"
        message = f"The {what} '{name}' is not a valid name in templates: {example} means something else."
        yield at(node, message, f"Rename it to '{meant}'." if meant else "Use letters, digits and underscores.")


RULE = Rule(
    code="NOE122",
    name="unreadable-name",
    severity="warning",
    summary="The name of a step, a label or an iterator is not valid in templates.",
    why="`{{ fetch-orders.count }}` is `fetch` minus `orders.count`. A name consists of letters, digits and underscores, "
    "does not begin with a digit, and is not a keyword such as `in` or `not`.",
    fix="Use underscores: `fetch_orders`.",
    bad=GOOD.replace("fetch_orders", "fetch-orders"),
    good=GOOD,
    check=check,
)
