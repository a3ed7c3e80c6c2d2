"""NOE007 reports aliases that contain themselves or grow beyond all bounds when written out."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.reading.problems import told
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: tree, path: examples/tree }
workload:
  leaf: &leaf { colour: green }
  tree: { left: *leaf, right: *leaf }
workflow:
  - step: report
    tool:
      kind: noop
      message: "{{ workload.tree.left.colour }} and {{ workload.tree.right.colour }}"
"""


def check(subject: Subject) -> Iterator[Found]:
    return told(subject, "Write the values out instead of repeating them by aliases.", "recursive-alias", "alias-bomb")


RULE = Rule(
    code="NOE007",
    name="endless-alias",
    group="reading",
    severity="error",
    summary="Aliases contain themselves, or make a document of more than 500,000 values.",
    why="Written out, such a document has no end or fills the memory of whoever reads it.",
    fix="Write the values out, or repeat them at run time with a `loop`.",
    bad=GOOD.replace("tree: { left: *leaf,", "tree: &tree { left: *tree,"),
    good=GOOD,
    check=check,
)
