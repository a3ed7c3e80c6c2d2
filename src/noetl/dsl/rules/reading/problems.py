"""Report problems of the parser; each rule takes certain kinds of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Check, Finding
from noetl.dsl.reading.problems import ProblemKind, ReadProblem


def problem_check(*kinds: ProblemKind, fix: str | Callable[[ReadProblem], str]) -> Check:
    """Return a check that reports every problem of these kinds."""

    def check(subject: CheckContext) -> Iterator[Finding]:
        for problem in subject.document.problems:
            if problem.kind in kinds:
                yield Finding(
                    problem.start, problem.end, problem.message, fix if isinstance(fix, str) else fix(problem)
                )

    return check
