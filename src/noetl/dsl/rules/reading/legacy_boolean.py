"""NOE014 reports `yes`, `no`, `on` and `off` without quotes, which are texts and not booleans."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: mail, path: examples/mail }
workload:
  dry_run: true
workflow:
  - step: report
    tool:
      kind: noop
      message: "Dry run: {{ workload.dry_run }}"
"""
_TRUE = frozenset({"yes", "on"})
_WORDS = _TRUE | {"no", "off"}


def check(subject: Subject) -> Iterator[Found]:
    problems = [problem for problem in subject.document.problems if problem.kind == "legacy-boolean"]
    if not problems:
        return
    judged = {finding.node.start for finding in subject.shape} if subject.root else frozenset()
    for problem in problems:
        word = subject.source.text[problem.start : problem.end]
        # A place that wants a boolean, a number or another word is told so by the rule for that place.
        if word.lower() not in _WORDS or problem.start in judged:
            continue
        boolean = "true" if word.lower() in _TRUE else "false"
        fix = f'Write {boolean} if you mean the boolean, or "{word}" in quotes if you mean the word.'
        yield Found(problem.start, problem.end, problem.message, fix)


RULE = Rule(
    code="NOE014",
    name="legacy-boolean",
    group="reading",
    severity="warning",
    summary="`yes`, `no`, `on` or `off` without quotes is a text, not a boolean.",
    why="Older YAML read these words as booleans, YAML 1.2 reads them as texts, and a text that is not empty counts as true: "
    "`{{ workload.dry_run }}` is then true for `no` as well.",
    fix="Write `true` or `false`. If the word itself is meant, put it in quotes.",
    bad=GOOD.replace("dry_run: true", "dry_run: no"),
    good=GOOD,
    check=check,
)
