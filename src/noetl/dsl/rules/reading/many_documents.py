"""NOE011 reports a second document in the file."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule, example
from noetl.dsl.rules.reading.problems import problem_check

GOOD = example("""\
workflow:
  - step: greet
    tool: { kind: noop }
""")

RULE = Rule(
    code="NOE011",
    name="many-documents",
    severity="error",
    summary="The file contains more than one document.",
    why="A file is one playbook with one name, one version and one history. The other documents would not be registered.",
    fix="Put each playbook in its own file, and call one from another with `kind: playbook`.",
    bad=GOOD + "---\n" + GOOD,
    good=GOOD,
    check=problem_check("many-documents", fix="Move the second playbook to its own file."),
)
