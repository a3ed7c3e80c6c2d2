"""Completes inside `{{ … }}` and `{% … %}`: names by role, keys below them, filters, tests, functions and known texts.

A part of `complete`, tested in tests/unit/lsp/test_complete_templates.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from noetl.dsl.outcome import ERROR_KINDS, GATE_EVENTS, ROUTING_EVENTS, STATUSES
from noetl.dsl.scopes import SCOPES, in_iteration, label_places, scopes_at, visible
from noetl.dsl.sites import Site
from noetl.dsl.subject import Subject
from noetl.expr import FILTERS, FUNCTIONS, TESTS, Callee
from noetl.lsp.complete_values import step_items
from noetl.lsp.describe import callee_text, step_text, task_text
from noetl.lsp.expression import Writing, writing
from noetl.lsp.items import Item, ItemKind
from noetl.lsp.members import members, shown

_STATEMENTS = ("if", "elif", "else", "endif", "for", "endfor", "set")
_OF_STEPS = frozenset({"done", "ok", "fail"})
_ENVELOPES = frozenset({"outcome", "output"})


@dataclass(frozen=True, slots=True)
class TemplateItems:
    """What may stand at the cursor, and how much of it is written."""

    prefix: str
    items: tuple[Item, ...]


def template_items(subject: Subject, site: Site, cursor: int) -> TemplateItems | None:
    """Give what may stand at a place in the text of a template; None outside of its code."""
    found = writing(site.node.text, cursor)
    if found is None:
        return None
    return TemplateItems(found.prefix, tuple(_items(subject, site, found)))


def _items(subject: Subject, site: Site, found: Writing) -> Iterable[Item]:
    match found.wanted:
        case "name":
            return [*_names(subject, site), *_callees(FUNCTIONS, "function")]
        case "key":
            known = members(subject, site, found.path)
            return [Item(name, "key", note) for name, note in known.items()]
        case "filter":
            return _callees(FILTERS, "filter")
        case "test":
            return _callees(TESTS, "test")
        case "text":
            return _texts(subject, site, found)
        case "statement":
            return [Item(word, "word", insert=f"{word} ") for word in _STATEMENTS]
    return ()


def _callees(table: Mapping[str, Callee], kind: ItemKind) -> list[Item]:
    words = ((name, callee) for name, callee in table.items() if name.isidentifier())
    return [Item(name, kind, callee.summary, callee_text(callee), rank=3) for name, callee in words]


def _names(subject: Subject, site: Site) -> Iterable[Item]:
    """Give every name that may be read here, each as what it stands for first."""
    names = subject.names
    scopes, labels = scopes_at(site), label_places(site, names)
    for name in sorted(visible(site, names)):
        step = subject.playbook.step(name)
        if name in scopes:
            if name != "iter" or in_iteration(site):
                yield Item(name, "scope", SCOPES[name])
        elif name in labels and site.step is not None:
            task = site.step.tasks[labels[name]]
            yield Item(name, "task", f"The result of a task of kind {task.kind}.", task_text(task, None), rank=0)
        elif step is not None:
            yield Item(name, "step", "The result of a step.", step_text(step, subject.net), rank=0)
        elif name in names.workload:
            default = subject.playbook.workload.get(name)
            yield Item(name, "key", f"Of the workload: {shown(default.data if default else None)}", rank=2)
        else:
            yield Item(name, "key", "", rank=2)


def _texts(subject: Subject, site: Site, found: Writing) -> Iterable[Item]:
    """Give the texts that are known where one is being written: steps, states, kinds of error, events."""
    if found.function in _OF_STEPS:
        return step_items(subject)
    path = found.path
    if path == ("event", "name"):
        events = GATE_EVENTS if site.role == "admit" else ROUTING_EVENTS
        return [Item(name, "word", meaning) for name, meaning in events.items()]
    if len(path) > 1 and path[0] in _ENVELOPES:
        if path[1:] == ("status",):
            return [Item(word, "word") for word in STATUSES]
        if path[1:] == ("error", "kind"):
            return [Item(word, "word") for word in ERROR_KINDS]
    return ()
