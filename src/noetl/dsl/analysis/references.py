"""Resolve the names that templates read: scopes, steps, tasks and keys.

A name may have several meanings, in lookup order at run time. Tested in tests/unit/dsl/analysis/test_scopes.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from noetl.dsl.analysis.scopes import (
    BEFORE_START,
    CTX_FIELDS,
    FRAME_NAMES,
    LOOP_NAMES,
    SCOPES,
    Names,
    binds,
    claims_frames,
    in_iteration,
    is_iteration_key,
    label_places,
    scopes_at,
)
from noetl.dsl.analysis.templates import TemplateSite
from noetl.expr import Read

# A function call that takes the name of a step.
ASKED: Final = re.compile(r"(?<![\w.])(?P<function>done|ok|fail)\(\s*(?P<quote>['\"])(?P<step>[^'\"]*)(?P=quote)")
Meaning = Literal["scope", "misplaced", "input", "ctx", "iter", "label", "step", "workload"]


class Reference(Struct, frozen=True, eq=False):
    """One read of a template; a name without a meaning is unknown."""

    site: TemplateSite
    read: Read
    means: tuple[Meaning, ...]

    @property
    def name(self) -> str:
        return str(self.read.path[0])

    @property
    def key(self) -> str | None:
        """The constant key directly after the root name."""
        key = self.read.path[1] if len(self.read.path) > 1 else None
        return key if isinstance(key, str) else None


def references(sites: Iterable[TemplateSite], names: Names) -> tuple[Reference, ...]:
    """Return every read of every template with the meanings of its name."""
    return tuple(_references(sites, names))


def _references(sites: Iterable[TemplateSite], names: Names) -> Iterator[Reference]:
    for site in sites:
        if site.template is not None:
            known: dict[str, tuple[Meaning, ...]] = {}
            for read in site.template.reads:
                name = str(read.path[0])
                if name == "iter" and read.path[1:2] == ("parent",) and site.role not in BEFORE_START:
                    # A child playbook may run inside its caller's loop.
                    yield Reference(site, read, ("scope",))
                    continue
                if name not in known:
                    known[name] = tuple(meanings(site, name, names))
                yield Reference(site, read, known[name])


def meanings(site: TemplateSite, name: str, names: Names) -> Iterator[Meaning]:
    """Yield the meanings of a root name in a template, in lookup order."""
    if name in scopes_at(site):
        yield "scope"
        return
    bare = tuple(_bare(site, name, names))
    if not bare and name in SCOPES:
        yield "misplaced"
    yield from bare


def _bare(site: TemplateSite, name: str, names: Names) -> Iterator[Meaning]:
    if site.role == "workload":
        return
    if site.role not in BEFORE_START:
        if binds(site, names, name):
            yield "input"
        if name in names.ctx or name in CTX_FIELDS:
            yield "ctx"
        if in_iteration(site) and (name in LOOP_NAMES or is_iteration_key(site, names, name)):
            yield "iter"
        if name in label_places(site, names):
            yield "label"
        if name in names.steps and not site.in_workbook:
            yield "step"
        if name in FRAME_NAMES and claims_frames(site):
            yield "iter"
    if name in names.workload:
        yield "workload"
