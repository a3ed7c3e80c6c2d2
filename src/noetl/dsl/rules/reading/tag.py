"""NOE005 reports a YAML tag that a playbook does not know or that does not fit its value."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: copy, path: examples/copy }
workload:
  target: !!str 2024
workflow:
  - step: report
    tool:
      kind: noop
      message: "Copied to {{ workload.target }}."
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "Remove the tag; for a value from the environment use `workload` or `keychain`.", "tag")


RULE = Rule(
    code="NOE005",
    name="tag",
    group="reading",
    severity="error",
    summary="A tag such as `!env` or `!!python/object` is not part of a playbook.",
    why="A tag asks the reader to build something else than plain data. Playbooks are read from many places, "
    "so nothing in them may run code or look around on the machine that reads them.",
    fix="Remove the tag. `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!map` and `!!seq` are known; "
    "other values come in through `workload` or `keychain`.",
    bad=GOOD.replace("!!str 2024", "!env TARGET"),
    good=GOOD,
    check=check,
)
