"""Points findings at parts of templates; shared by the rules of this folder."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.diagnostic import Severity
from noetl.dsl.references import Reference
from noetl.dsl.rule import Found, inside
from noetl.dsl.subject import Subject


def at_element(
    subject: Subject, reference: Reference, depth: int, message: str, fix: str, severity: Severity | None = None
) -> Found:
    """Point a finding at one element of the path that a template reads; 0 is the root name."""
    element = str(reference.read.path[depth])
    return inside(subject, reference.site, reference.read.offsets[depth], len(element), message, fix, severity)


def problems(subject: Subject, kind: str, fix: str) -> Iterator[Found]:
    """Turn the problems of one kind that compiling the templates found into findings."""
    for site in subject.sites:
        for problem in site.template.problems if site.template else ():
            if problem.kind == kind:
                message = f"{problem.message[0].upper()}{problem.message[1:]}."
                if problem.candidates and problem.candidates[0] != problem.name:
                    message += f" Did you mean '{problem.candidates[0]}'?"
                yield inside(subject, site, problem.offset, len(problem.name), message, fix)
