"""Says what each name that a template reads stands for: a scope, a step, a task, a key, or nothing that is known.

A name may have several meanings at once, in the order in which they are tried when the playbook runs. Whether a meaning
is there in time is judged by the rules. Tested in tests/unit/dsl/test_scopes.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from noetl.dsl.scopes import (
    BEFORE_START,
    CTX_FIELDS,
    LOOP_NAMES,
    SCOPES,
    Names,
    in_iteration,
    input_names,
    iteration_names,
    label_places,
    scopes_at,
)
from noetl.dsl.sites import Site
from noetl.expr import Read

# A call that asks how a step stands, by the step's name.
ASKED: Final = re.compile(r"(?<![\w.])(?P<function>done|ok|fail)\(\s*(?P<quote>['\"])(?P<step>[^'\"]*)(?P=quote)")
Meaning = Literal["scope", "misplaced", "input", "ctx", "iter", "label", "step", "workload"]


class Reference(Struct, frozen=True, eq=False):
    """One read of one template; without any meaning the name is unknown."""

    site: Site
    read: Read
    means: tuple[Meaning, ...]

    @property
    def name(self) -> str:
        return str(self.read.path[0])

    @property
    def key(self) -> str | None:
        """The constant key directly behind the root name."""
        key = self.read.path[1] if len(self.read.path) > 1 else None
        return key if isinstance(key, str) else None


def references(sites: Iterable[Site], names: Names) -> tuple[Reference, ...]:
    """Give every read of every template with what its name stands for."""
    return tuple(_references(sites, names))


def _references(sites: Iterable[Site], names: Names) -> Iterator[Reference]:
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


def meanings(site: Site, name: str, names: Names) -> Iterator[Meaning]:
    """Give what a root name may stand for in a template, first the one that wins."""
    if name in scopes_at(site):
        yield "scope"
        return
    found = tuple(_bare(site, name, names))
    if not found and name in SCOPES:
        yield "misplaced"
    yield from found


def _bare(site: Site, name: str, names: Names) -> Iterator[Meaning]:
    if site.role == "workload":
        return
    if site.role not in BEFORE_START:
        if name in input_names(site, names):
            yield "input"
        if name in names.ctx or name in CTX_FIELDS:
            yield "ctx"
        if in_iteration(site) and (name in LOOP_NAMES or name in iteration_names(site, names)):
            yield "iter"
        if name in label_places(site, names):
            yield "label"
        if name in names.steps and not site.in_workbook:
            yield "step"
    if name in names.workload:
        yield "workload"
