"""NOE316 reports a field of `outcome` or `output` that the task or step never has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from noetl.dsl.analysis.outcomes import (
    ENVELOPE,
    ERROR_FIELDS,
    HELPERS,
    META_FIELDS,
    fields_beside_body,
    has_field,
    kind_of,
    step_fields,
    task_fields,
)
from noetl.dsl.analysis.references import Reference
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.typos import slip_beside_data, slip_of
from noetl.dsl.diagnostic import Severity, Suggestions
from noetl.dsl.rules.templates.reporting import at_element
from noetl.dsl.tree.playbook import Task

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: fetch
    tool:
      - get:
          kind: http
          url: "{{ workload.api }}/rows"
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and outcome.http.status == 429 }}"
                  then: { do: retry, attempts: 5, delay: 2 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else:
                    then: { do: continue }
""")


class _Shape(NamedTuple):
    """The fields of an outcome: its result's (None: any) and its kinds' helpers."""

    who: str
    fields: frozenset[str] | None
    helpers: dict[str, frozenset[str]]
    beside_body: frozenset[str]  # the fields of a result with a body, which may have any key
    closed_helpers: bool  # every kind is known, so other helpers never exist
    suggestions: Suggestions


class _Wrong(NamedTuple):
    """One element of a path that does not exist."""

    depth: int
    message: str
    fix: str
    severity: Severity | None = None


def check(subject: CheckContext) -> Iterator[Finding]:
    shapes: dict[int, _Shape] = {}
    by_position: dict[tuple[int, int], list[tuple[Reference, _Wrong | None]]] = {}
    for reference in subject.references:
        if reference.name not in ("outcome", "output") or reference.means != ("scope",):
            continue
        if reference.key is None or reference.read.guarded:
            continue
        site = reference.site
        owner = id(site.task or site.step)
        if owner not in shapes:
            shapes[owner] = _shape(site, subject)
        position = (id(site.node), reference.read.offset)
        by_position.setdefault(position, []).append((reference, _wrong(reference, shapes[owner])))
    for reads in by_position.values():
        # Tasks may share a policy through an anchor: it is right if one of them has the field.
        reference, wrong = reads[0]
        if wrong and all(other for _, other in reads):
            yield at_element(subject, reference, *wrong)


def _shape(site: TemplateSite, subject: CheckContext) -> _Shape:
    tasks: tuple[Task, ...] = (site.task,) if site.task else site.step.tasks if site.step else ()
    if site.task is not None:
        fields = task_fields(site.task, subject.kinds, subject.workbook)
        who = f"a task of kind '{site.task.kind}'"
    else:
        fields = step_fields(site.step, subject.kinds, subject.workbook) if site.step else None
        who = f"step '{site.step.name}'" if site.step else "this"
    kinds = [kind_of(task, subject.kinds, subject.workbook) for task in tasks]
    helpers = {kind.helper[0]: frozenset(kind.helper[1]) for kind in kinds if kind and kind.helper}
    beside = frozenset() if fields else fields_beside_body(tasks, subject.kinds, subject.workbook)
    return _Shape(who, fields, helpers, beside, all(kinds), subject.suggestions)


def _wrong(reference: Reference, shape: _Shape) -> _Wrong | None:
    path = reference.read.path
    first, second = str(path[1]), path[2] if len(path) > 2 else None
    # In the `set` of a task, `output` is the result itself, which may have any key.
    is_envelope = not (reference.name == "output" and reference.site.role == "task_set")
    if is_envelope and isinstance(second, str):
        if first == "error" and second not in ERROR_FIELDS:
            return _no_field(shape, 2, f"{reference.name}.error", second, ERROR_FIELDS)
        if first == "meta":
            meant = slip_of(second, META_FIELDS)
            return _no_field(shape, 2, f"{reference.name}.meta", second, META_FIELDS) if meant else None
        if first in shape.helpers and second not in shape.helpers[first]:
            return _no_field(shape, 2, f"{reference.name}.{first}", second, shape.helpers[first])
    if first in ("result", "data") and shape.fields is not None:
        return _in_result(reference, shape, shape.fields)
    if first in ("result", "data") and isinstance(second, str) and second not in shape.beside_body:
        meant = slip_beside_data(second, shape.beside_body)
        return _no_field(shape, 2, f"the result of {shape.who}", second, sorted(shape.beside_body)) if meant else None
    if first in ENVELOPE or first in shape.helpers or first in shape.beside_body:
        return None
    if first in HELPERS and shape.closed_helpers and _is_helper_read(first, second):
        has = ", ".join(f"`{reference.name}.{name}`" for name in shape.helpers) or "none of its own"
        message = f"`{reference.name}.{first}` exists only for another kind: {shape.who} has {has}."
        return _Wrong(1, message, "Use a field of every outcome, such as `outcome.error.kind` or `outcome.error.code`.")
    return _elsewhere(reference.name, first, shape)


def _is_helper_read(helper: str, field: str | int | None) -> bool:
    return field is None or field in HELPERS[helper]


def _in_result(reference: Reference, shape: _Shape, fields: frozenset[str]) -> _Wrong | None:
    path = reference.read.path
    depth = 2
    while depth < len(path) and path[depth] == "data":
        depth += 1
    if depth >= len(path) or not isinstance(path[depth], str) or has_field(fields, str(path[depth])):
        return None
    owner = f"the result of {shape.who}"
    return _no_field(shape, depth, owner, str(path[depth]), fields)


def _elsewhere(root: str, name: str, shape: _Shape) -> _Wrong | None:
    """Check a key that is not a field of the outcome: it is looked up in the result."""
    known = (*ENVELOPE, *shape.helpers, *sorted(shape.beside_body))
    if shape.fields is None:
        meant = slip_beside_data(name, known)
        if meant is None:
            return None
        message = f"`{root}` has no field '{name}'. Did you mean '{meant}'?"
        return _Wrong(
            1, message, f"Write `{root}.{meant}`; for a key of the result, write `{root}.result.{name}`.", "warning"
        )
    if has_field(shape.fields, name):
        return None
    return _no_field(shape, 1, f"the outcome of {shape.who}", name, (*known, *sorted(shape.fields)))


def _no_field(shape: _Shape, depth: int, owner: str, name: str, known: Iterable[str]) -> _Wrong:
    names = list(dict.fromkeys(known))
    shown = f"`{owner}`" if "." in owner and " " not in owner else owner
    message = f"{shown[0].upper()}{shown[1:]} never has a field '{name}'.{shape.suggestions.did_you_mean(name, names)}"
    return _Wrong(depth, message, f"It has: {', '.join(field for field in names if not field.startswith('_'))}.")


RULE = Rule(
    code="NOE316",
    name="unknown-outcome-field",
    severity="warning",
    summary="A template reads a field of `outcome` that this tool kind never has.",
    why=(
        "Every outcome has `status`, `result`, `error` and `meta`, and some kinds add their own part: `http`, `pg` or `py`. "
        "Other fields are undefined, so a condition on them is always false."
    ),
    fix="Use a field that the outcome has. `outcome.error` describes the error for every kind.",
    bad=GOOD.replace("outcome.http.status == 429", "outcome.pg.code == '40001'"),
    good=GOOD,
    check=check,
)
