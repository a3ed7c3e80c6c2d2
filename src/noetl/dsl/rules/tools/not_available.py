"""NOE511 reports a kind, store, compression or source that cannot be used here."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.uses import uses
from noetl.dsl.tree.normalize.subscription import OTHER_SOURCES, is_subscription, source_of
from noetl.triggers.subscription import KINDS as READABLE

GOOD = example("""\
workflow:
  - step: count
    tool: { kind: postgres, auth: warehouse, query: SELECT count(*) FROM orders }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    if subject.root is not None and is_subscription(subject.root):
        source, node = source_of(subject.root)
        if node is not None and source.lower() in OTHER_SOURCES:
            message = f"The source '{source}' cannot be read by this version of NoETL, so no message starts anything."
            yield at(node, message, f"Use one of {', '.join(READABLE)}, or leave it for a later version.")
    if subject.unavailable is None:
        return
    for use in uses(subject.playbook):
        why = subject.unavailable(use.what, use.name)
        if why is not None:
            message = f"The {use.what} '{use.name}' cannot be used by this installation: {why}"
            yield at(
                use.at, f"{message}.", "Follow this advice before you run it: until then no execution of it starts."
            )


RULE = Rule(
    code="NOE511",
    name="not-available",
    severity="warning",
    summary="The playbook needs a kind, store, compression or source that this installation cannot use.",
    why="Its library is not installed, or this version of NoETL does not have it. The playbook is valid and can be "
    "registered, but an execution that needs it does not start.",
    fix="Run the command that the message names, or choose another kind, store, compression or source.",
    bad=GOOD.replace("kind: postgres", "kind: snowflake"),
    good=GOOD,
    check=check,
)
