"""NOE510 reports a statement that begins or ends a transaction in a task that is one transaction itself."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.playbook import Task
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.subject import Subject
from noetl.expr.sql import ends_transaction

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workflow:
  - step: book
    tool:
      kind: postgres
      auth: pg_main
      transactional: true
      commands:
        - UPDATE stock SET amount = amount - 1 WHERE item = 7
        - INSERT INTO sale (item) VALUES (7)
"""


def check(subject: Subject) -> Iterator[Found]:
    for code in subject.code:
        if code.language == "sql" and code.task is not None and _is_transactional(code.task):
            text = code.node.text
            if ends_transaction(text):
                yield at(
                    code.node,
                    "This text begins or ends a transaction, and a transactional task is one transaction.",
                    "Leave BEGIN, COMMIT and ROLLBACK out; or take `transactional` off, and see to repeated runs yourself.",
                )


def _is_transactional(task: Task) -> bool:
    found = task.fields.get("transactional")
    return found is not None and found.data is True


RULE = Rule(
    code="NOE510",
    name="transaction-control",
    group="tools",
    severity="error",
    summary="A transactional task holds a statement that begins or ends a transaction.",
    why=(
        "`transactional: true` commits what the task writes together with a completion marker. A `COMMIT` in between would part "
        "them, and a run that is repeated after a crash would write a second time."
    ),
    fix=(
        "Leave the statement out: the task begins and commits by itself. Savepoints may be used. For several transactions, "
        "write several tasks."
    ),
    bad=GOOD.replace("        - INSERT", "        - COMMIT\n        - INSERT"),
    good=GOOD,
    check=check,
)
