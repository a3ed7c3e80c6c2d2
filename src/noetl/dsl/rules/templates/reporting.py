"""Point findings at parts of templates; shared by the rules of this folder."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.references import Reference
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Check, Finding, inside
from noetl.dsl.diagnostic import Severity
from noetl.expr import Template


def at_element(
    subject: CheckContext, reference: Reference, depth: int, message: str, fix: str, severity: Severity | None = None
) -> Finding:
    """Point a finding at one element of a path; 0 is the root name."""
    offset, word = reference.read.offsets[depth], str(reference.read.path[depth])
    length = _length(reference.site.template, offset, word)
    return inside(subject, reference.site, offset, length, message, fix, severity)


def _length(template: Template | None, offset: int, word: str) -> int:
    """Return the length of a word, including quotes: `workload['name']`."""
    quoted = template is not None and template.source[offset : offset + 1] in ("'", '"')
    return len(word) + 2 if quoted else len(word)


def problem_check(kind: str, fix: str) -> Check:
    """Return a check that reports every compile problem of one kind in a template."""

    def check(subject: CheckContext) -> Iterator[Finding]:
        for site in subject.sites:
            for problem in site.template.problems if site.template else ():
                if problem.kind == kind:
                    message = f"{problem.message[0].upper()}{problem.message[1:]}."
                    if problem.candidates and problem.candidates[0] != problem.name:
                        message += f" Did you mean '{problem.candidates[0]}'?"
                    length = _length(site.template, problem.offset, problem.name)
                    yield inside(subject, site, problem.offset, length, message, fix)

    return check
