"""Known keys below a path in a template, each with a description.

A value that may have any key, such as a response body, has none. Tested in tests/unit/authoring/language/test_members.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from noetl.dsl.analysis.outcomes import ENVELOPE, ERROR_FIELDS, META_FIELDS, STATS, kind_of, selected
from noetl.dsl.analysis.references import meanings
from noetl.dsl.analysis.scopes import CTX_FIELDS, FINAL_ARGS, ITER_FIELDS, input_names, iteration_names
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.tree.playbook import Step, Task
from noetl.expr import TemplateError, compile_template

Members = Mapping[str, str]
_NONE: Members = {}
EVENT_FIELDS: Members = {
    "name": "Event name, such as `step.done`, `step.failed` or `loop.done`.",
    "payload": "Event payload; `name` and `data` for a signal.",
}
_PAYLOAD: Members = {"name": "Name of the signal.", "data": "Payload of the signal."}
_COUNTS: Members = {
    "total": "Number of items.",
    "succeeded": "Number of items that succeeded.",
    "failed": "Number of items that failed.",
    "skipped": "Number of items that were skipped.",
}
_JOB: Members = {"uuid": "Unique id of this execution.", "execution_id": "Same as `uuid`."}


def members(subject: CheckContext, site: TemplateSite, path: tuple[str, ...]) -> Members:
    """Return the keys that are known below a path."""
    if not path:
        return _NONE
    name, below = path[0], path[1:]
    found = next(iter(meanings(site, name, subject.names)), None)
    match found:
        case "scope":
            return _in_scope(subject, site, name, below)
        case "workload":
            return _in_workload(subject, path)
        case "iter":
            return _in_item(subject, site, below) if _is_iterator(site, name) else _NONE
        case "label":
            return _in_task(subject, _task(site.step, name), below)
        case "step":
            return _in_step(subject, subject.playbook.step(name), below)
    return _NONE


def _in_scope(subject: CheckContext, site: TemplateSite, name: str, below: tuple[str, ...]) -> Members:
    match name:
        case "workload":
            return _in_workload(subject, below)
        case "ctx" | "vars":
            return {**CTX_FIELDS, **_with_note(subject.names.ctx, "Key of `ctx`.")} if not below else _NONE
        case "iter":
            return _in_iteration(subject, site, below)
        case "step":
            scratch = subject.names.scratch.get(site.step.name, ()) if site.step else ()
            return _with_note(scratch, "Scratch value of this step-run.") if not below else _NONE
        case "args" | "input":
            return _in_input(subject, site, below)
        case "outcome" | "output":
            return _in_outcome(subject, site, below)
        case "_prev":
            return _in_task(subject, _previous(site), below)
        case "event":
            return EVENT_FIELDS if not below else _PAYLOAD if below == ("payload",) else _NONE
        case "job":
            return _JOB if not below else _NONE
        case "keychain":
            declared = (entry.name for entry in subject.playbook.keychain)
            return _with_note(declared, "Credential of the keychain.") if not below else _NONE
    return _NONE


def _with_note(names: Iterable[str], note: str) -> Members:
    return dict.fromkeys(sorted(names), note)


def _in_workload(subject: CheckContext, path: tuple[str, ...]) -> Members:
    if not path:
        return {name: describe_value(_default(subject, name)) for name in sorted(subject.names.workload)}
    return _keys(_value(_default(subject, path[0]), path[1:]))


def _default(subject: CheckContext, name: str) -> Any:
    found = subject.playbook.workload.get(name)
    return found.data if found else None


def _value(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and key.isdigit() and int(key) < len(data):
            data = data[int(key)]
        else:
            return None
    return data


def _keys(data: Any) -> Members:
    return {str(key): describe_value(value) for key, value in data.items()} if isinstance(data, dict) else _NONE


def describe_value(data: Any) -> str:
    """Return a short description of a default."""
    if isinstance(data, dict):
        return "A map."
    if isinstance(data, list):
        return "A list." if len(data) != 1 else "A list of one."
    if data is None:
        return "No default."
    text = str(data).lower() if isinstance(data, bool) else " ".join(str(data).split())
    return f"`{text if len(text) <= 60 else text[:59] + '…'}`"


def _is_iterator(site: TemplateSite, name: str) -> bool:
    return site.step is not None and site.step.loop is not None and site.step.loop.iterator == name


def _in_iteration(subject: CheckContext, site: TemplateSite, below: tuple[str, ...]) -> Members:
    if not below:
        known = dict.fromkeys(sorted(iteration_names(site, subject.names) - set(ITER_FIELDS)), "Key of this iteration.")
        if site.step and site.step.loop:
            known[site.step.loop.iterator] = "Item of this iteration."
        return {**known, **ITER_FIELDS}
    return _in_item(subject, site, below[1:]) if _is_iterator(site, below[0]) else _NONE


def _in_item(subject: CheckContext, site: TemplateSite, below: tuple[str, ...]) -> Members:
    items = site.step.loop.items if site.step and site.step.loop else None
    data = items.data if items else None
    if isinstance(data, str):
        try:
            reads = compile_template(data).reads
        except TemplateError:
            return _NONE
        path = tuple(map(str, reads[0].path)) if len(reads) == 1 else ()
        if path[:1] == ("workload",):
            path = path[1:]
        data = _value(_default(subject, path[0]), path[1:]) if path else None
    first = data[0] if isinstance(data, list) and data else None
    return _keys(_value(first, below))


def _in_input(subject: CheckContext, site: TemplateSite, below: tuple[str, ...]) -> Members:
    names = subject.names
    if not below:
        return _with_note(input_names(site, names), "Bound by an arc, or input of this step or task.")
    is_final = site.step is not None and site.step.name == subject.playbook.executor.setting("final_step")
    if is_final and below == ("results",) and below[0] in FINAL_ARGS:
        return _with_note(names.steps, "Result of the step.")
    return _NONE


def _task(step: Step | None, label: str) -> Task | None:
    return next((task for task in step.tasks if task.label == label), None) if step else None


def _previous(site: TemplateSite) -> Task | None:
    tasks = site.step.tasks if site.step else ()
    return next((before for before, task in pairwise(tasks) if task is site.task), None)


def _kind(subject: CheckContext, task: Task) -> Kind | None:
    return kind_of(task, subject.kinds, subject.workbook)


def _in_task(subject: CheckContext, task: Task | None, below: tuple[str, ...]) -> Members:
    if task is None or below not in ((), ("data",), ("result",)):
        return _NONE
    kind = _kind(subject, task)
    fields = dict(kind.result or {}) if kind else {}
    if below and "data" in fields:  # the body, which may have any key
        return _NONE
    return {**fields, **_with_note(selected(task), "Kept inline by `select`.")}


def _in_step(subject: CheckContext, step: Step | None, below: tuple[str, ...]) -> Members:
    if step is None:
        return _NONE
    labels = {task.label: f"Result of the `{task.kind}` task." for task in step.tasks}
    if step.loop:
        if below[:1] == ("stats",):
            return {word: _COUNTS[word] for word in STATS} if len(below) == 1 else _NONE
        return {"results": "Results of the items, in order.", "stats": "Item counts."} if not below else _NONE
    if below[:1] == ("results",) and len(step.tasks) > 0:
        return labels if len(below) == 1 else _in_task(subject, _task(step, below[1]), below[2:])
    if below and below[0] in labels:
        return _in_task(subject, _task(step, below[0]), below[1:])
    last = _in_task(subject, step.tasks[-1] if step.tasks else None, below)
    if below or all(task.label_at is None for task in step.tasks):
        return last
    return {**last, **labels, "results": "Result of every task, by label."}


def _in_outcome(subject: CheckContext, site: TemplateSite, below: tuple[str, ...]) -> Members:
    tasks = (site.task,) if site.task else site.step.tasks if site.step else ()
    helpers = dict(kind.helper for task in tasks if (kind := _kind(subject, task)) and kind.helper)
    if below and below[0] in helpers:
        return helpers[below[0]] if len(below) == 1 else _NONE
    if below in (("error",), ("meta",)):
        return ERROR_FIELDS if below == ("error",) else META_FIELDS
    result = below[1:] if below[:1] in (("result",), ("data",)) else None
    if below and result is None:
        return _NONE
    inner = _in_task(subject, site.task, result or ()) if site.task else _in_step(subject, site.step, result or ())
    if below:
        return inner
    return {
        **ENVELOPE,
        **_with_note(helpers, "Added by this tool kind."),
        **{k: v for k, v in inner.items() if k not in ENVELOPE},
    }
