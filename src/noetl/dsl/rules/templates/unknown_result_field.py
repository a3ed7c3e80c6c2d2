"""NOE317 reports a field that the result of a step or task never has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from noetl.dsl.analysis.outcomes import (
    LOOP_RESULT,
    STATS,
    fields_beside_body,
    has_field,
    kind_of,
    step_fields,
    task_fields,
)
from noetl.dsl.analysis.references import Reference
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.typos import slip_beside_data
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.rules.templates.reporting import at_element
from noetl.dsl.tree.playbook import Step, Task

GOOD = example("""\
workflow:
  - step: read
    tool: { kind: postgres, auth: pg_main, query: SELECT id FROM orders }
    next: show
  - step: show
    tool: { kind: noop, message: "{{ read.row_count }} orders" }
""")


_ANY = "*"  # a field of a result that may have any


class _Results:
    """The fields of results, each computed once."""

    def __init__(self, subject: CheckContext) -> None:
        self._subject = subject
        self._steps: dict[str, Step] = {}
        for step in subject.playbook.workflow:
            self._steps.setdefault(step.name, step)
        self._labels: dict[int, dict[str, list[Task]]] = {}
        self._known: dict[str, frozenset[str] | None] = {}
        self._counts: dict[int, Counter[str]] = {}  # of the tasks of a step with a field
        self._two_of_a_kind: dict[int, list[Task]] = {}  # of the tasks of a step, at most

    def of_step(self, name: str) -> frozenset[str] | None:
        if name not in self._known:
            self._known[name] = step_fields(self._steps[name], *self._kinds)
        return self._known[name]

    def of_task(self, step: Step, label: str) -> frozenset[str] | None:
        named = self._labelled(step).get(label, [])
        return task_fields(named[0], *self._kinds) if len(named) == 1 else None

    def before(self, step: Step, task: Task) -> frozenset[str] | None:
        """Return the fields of `_prev`, which may be the result of any other task."""
        if id(step) not in self._counts:
            fields = [task_fields(one, *self._kinds) for one in step.tasks]
            self._counts[id(step)] = Counter(name for one in fields for name in (one or (_ANY,)))
        counts, own = self._counts[id(step)], task_fields(task, *self._kinds) or {_ANY}
        others = frozenset(name for name, count in counts.items() if count > (name in own))
        return None if _ANY in others else others or None

    def beside_body(self, reference: Reference) -> frozenset[str]:
        """Return the fields of a result with a body; none where it may be other data."""
        site, name = reference.site, reference.name
        if reference.means == ("step",):
            step = self._steps[name]
            if step.loop or reference.key == "results" or reference.key in self._labelled(step):
                return frozenset()
            return self._beside(step, None)
        if reference.means == ("label",) and site.step is not None:
            return fields_beside_body(self._labelled(site.step).get(name, ()), *self._kinds)
        if name == "_prev" and reference.means == ("scope",) and site.step is not None:
            return self._beside(site.step, site.task)
        return frozenset()

    def _beside(self, step: Step, task: Task | None) -> frozenset[str]:
        """Return the fields beside the bodies of all tasks but one."""
        if id(step) not in self._two_of_a_kind:
            by_kind: dict[str, list[Task]] = {}
            for one in step.tasks:
                kind = kind_of(one, *self._kinds)
                alike = by_kind.setdefault(kind.name if kind else "", [])
                if len(alike) < 2:
                    alike.append(one)
            self._two_of_a_kind[id(step)] = [one for alike in by_kind.values() for one in alike]
        tasks = self._two_of_a_kind[id(step)]
        return fields_beside_body((one for one in tasks if one is not task), *self._kinds)

    def _labelled(self, step: Step) -> dict[str, list[Task]]:
        if id(step) not in self._labels:
            found = self._labels[id(step)] = {}
            for task in step.tasks:
                found.setdefault(task.label, []).append(task)
        return self._labels[id(step)]

    @property
    def _kinds(self) -> tuple[Kinds, dict[str, Task]]:
        return self._subject.kinds, self._subject.workbook


def check(subject: CheckContext) -> Iterator[Finding]:
    results = _Results(subject)
    for reference in subject.references:
        if len(reference.read.path) < 2 or reference.read.guarded:
            continue
        fields, owner = _fields(reference, results)
        if fields is not None:
            yield from _unknown(subject, reference, fields, owner)
        else:
            yield from _misspelled(subject, reference, results)


def _fields(reference: Reference, results: _Results) -> tuple[frozenset[str] | None, str]:
    site, name = reference.site, reference.name
    if reference.means == ("step",):
        return results.of_step(name), f"step '{name}'"
    if reference.means == ("label",) and site.step is not None:
        return results.of_task(site.step, name), f"task '{name}'"
    if name == "_prev" and reference.means == ("scope",) and site.step is not None and site.task is not None:
        return results.before(site.step, site.task), "the previous task"
    return None, ""


def _misspelled(subject: CheckContext, reference: Reference, results: _Results) -> Iterator[Finding]:
    """Find a typing mistake in a result with a body: any other key may be the body's."""
    fields = results.beside_body(reference)
    key = reference.key
    meant = slip_beside_data(key, fields) if key and key not in fields else None
    if meant:
        message = f"The result of '{reference.name}' has no field '{key}'. Did you mean '{meant}'?"
        fix = f"It has: {', '.join(sorted(fields))}. A key of the body is read as `{reference.name}.body.{key}`."
        yield at_element(subject, reference, 1, message, fix)


def _unknown(subject: CheckContext, reference: Reference, fields: frozenset[str], owner: str) -> Iterator[Finding]:
    path = reference.read.path
    depth = 1
    while depth < len(path) and path[depth] == "data":
        depth += 1
    key = path[depth] if depth < len(path) else None
    below = path[depth + 1] if depth + 1 < len(path) else None
    if not isinstance(key, str):
        return
    if not has_field(fields, key):
        is_loop = fields >= LOOP_RESULT
        shown = sorted(field for field in fields if not field.startswith("_"))
        message = f"The result of {owner} never has a field '{key}'.{subject.suggestions.did_you_mean(key, shown)}"
        fix = f"It has: {', '.join(shown)}."
        if is_loop:
            fix = "A loop returns `results`, one entry per item, and `stats`."
        yield at_element(subject, reference, depth, message, fix)
    elif key == "stats" and fields >= LOOP_RESULT and isinstance(below, str) and below not in STATS:
        message = f"The stats of a loop have no '{below}'.{subject.suggestions.did_you_mean(below, STATS)}"
        yield at_element(subject, reference, depth + 1, message, f"They have: {', '.join(STATS)}.")


RULE = Rule(
    code="NOE317",
    name="unknown-result-field",
    severity="warning",
    summary="A template reads a field that the result of a step or task never has.",
    why=(
        "Loops and kinds such as `postgres` and `shell` have results of a known form. Any other field is undefined and fails "
        "the task that uses it. The body of an `http` result may have any key, so there only a typing mistake in a field of "
        "the result is reported: `fetch.stauts`, `fetch.bdy`. Results of `python` are not checked."
    ),
    fix="Use a field of the result; `noetl explain KIND` lists the fields of a kind.",
    bad=GOOD.replace("read.row_count", "read.rowcount"),
    good=GOOD,
    check=check,
)
