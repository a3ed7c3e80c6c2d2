"""NOE510 reports a `BEGIN` or `COMMIT` in a transactional task."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Task
from noetl.expr.sql.statements import ends_transaction

GOOD = example("""\
workflow:
  - step: book
    tool:
      kind: postgres
      auth: pg_main
      transactional: true
      commands:
        - UPDATE stock SET amount = amount - 1 WHERE item = 7
        - INSERT INTO sale (item) VALUES (7)
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for code in subject.code:
        if code.language == "sql" and code.task is not None and _is_transactional(code.task):
            text = code.node.text
            if ends_transaction(text):
                yield at(
                    code.node,
                    "This statement begins or ends a transaction, but a transactional task is one transaction.",
                    "Remove BEGIN, COMMIT and ROLLBACK; or remove `transactional` and make the task idempotent yourself.",
                )


def _is_transactional(task: Task) -> bool:
    setting = task.fields.get("transactional")
    return setting is not None and setting.data is True


RULE = Rule(
    code="NOE510",
    name="transaction-control",
    severity="error",
    summary="A transactional task contains a statement that begins or ends a transaction.",
    why=(
        "`transactional: true` commits the writes of the task together with a completion marker. A `COMMIT` in between would "
        "separate them, and a retry after a crash would write a second time."
    ),
    fix=(
        "Remove the statement: the task begins and commits by itself. Savepoints are allowed. For several transactions, "
        "write several tasks."
    ),
    bad=GOOD.replace("        - INSERT", "        - COMMIT\n        - INSERT"),
    good=GOOD,
    check=check,
)
