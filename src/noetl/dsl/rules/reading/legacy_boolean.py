"""NOE014 reports unquoted `yes`, `no`, `on` and `off`, which are text."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example

GOOD = example("""\
workload:
  dry_run: true
workflow:
  - step: report
    tool:
      kind: noop
      message: "Dry run: {{ workload.dry_run }}"
""")
_TRUE = frozenset({"yes", "on"})
_WORDS = _TRUE | {"no", "off"}


def check(subject: CheckContext) -> Iterator[Finding]:
    problems = [problem for problem in subject.document.problems if problem.kind == "legacy-boolean"]
    if not problems:
        return
    reported = {finding.node.start for finding in subject.shape} if subject.root else frozenset()
    for problem in problems:
        word = subject.source.text[problem.start : problem.end]
        # Where the field takes a boolean, a number or another word, the rule for that field reports it.
        if word.lower() not in _WORDS or problem.start in reported:
            continue
        boolean = "true" if word.lower() in _TRUE else "false"
        fix = f'Write {boolean} if you mean the boolean, or "{word}" in quotes if you mean the word.'
        yield Finding(problem.start, problem.end, problem.message, fix)


RULE = Rule(
    code="NOE014",
    name="legacy-boolean",
    severity="warning",
    summary="Unquoted `yes`, `no`, `on` or `off` is text, not a boolean.",
    why="YAML 1.1 parsed these words as booleans; YAML 1.2 parses them as text, and non-empty text is true: "
    "`{{ workload.dry_run }}` is true even for `no`.",
    fix="Write `true` or `false`. If you mean the word itself, put it in quotes.",
    bad=GOOD.replace("dry_run: true", "dry_run: no"),
    good=GOOD,
    check=check,
)
