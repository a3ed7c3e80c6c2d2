"""NOE007 reports aliases that contain themselves or expand without bound."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workload:
  leaf: &leaf { colour: green }
  tree: { left: *leaf, right: *leaf }
workflow:
  - step: report
    tool:
      kind: noop
      message: "{{ workload.tree.left.colour }} and {{ workload.tree.right.colour }}"
""")

RULE = Rule(
    code="NOE007",
    name="endless-alias",
    severity="error",
    summary="An alias contains itself, or aliases expand to more than 500,000 values.",
    why="Expanded, such a document is infinite or exhausts the memory of the program that reads it.",
    fix="Write the values out, or repeat them at run time with a `loop`.",
    bad=GOOD.replace("tree: { left: *leaf,", "tree: &tree { left: *tree,"),
    good=GOOD,
    check=problem_check(
        "recursive-alias", "alias-bomb", fix="Write the values out instead of repeating them with aliases."
    ),
)
