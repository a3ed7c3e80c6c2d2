"""Turns the problems of the reader into findings; every rule of this group takes the kinds of problem that are its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from noetl.dsl.problem import ProblemKind, ReadProblem
from noetl.dsl.rule import Found
from noetl.dsl.subject import Subject


def told(subject: Subject, fix: str | Callable[[ReadProblem], str], *kinds: ProblemKind) -> Iterator[Found]:
    """Give a finding for every problem of these kinds, in the reader's own words."""
    for problem in subject.document.problems:
        if problem.kind in kinds:
            advice = fix if isinstance(fix, str) else fix(problem)
            yield Found(problem.start, problem.end, problem.message, advice)
