"""Complete templates. Tested in tests/unit/authoring/completion/test_templates.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from noetl.authoring.completion.items import Item, ItemKind
from noetl.authoring.completion.values import step_items
from noetl.authoring.language.describe import callee_text, step_text, task_text
from noetl.authoring.language.members import describe_value, members
from noetl.authoring.language.template_tokens import Writing, writing
from noetl.dsl.analysis.outcomes import ERROR_KINDS, GATE_EVENTS, ROUTING_EVENTS, STATUSES
from noetl.dsl.analysis.scopes import SCOPES, in_iteration, label_places, scopes_at, visible
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.expr import FILTERS, FUNCTIONS, TESTS, Callee

_STATEMENTS = ("if", "elif", "else", "endif", "for", "endfor", "set")
_OF_STEPS = frozenset({"done", "ok", "fail"})
_ENVELOPES = frozenset({"outcome", "output"})


@dataclass(frozen=True, slots=True)
class TemplateItems:
    """Completions at the cursor, and the prefix they replace."""

    prefix: str
    items: tuple[Item, ...]


def template_items(subject: CheckContext, site: TemplateSite, cursor: int) -> TemplateItems | None:
    """Return completions at an offset in a template; None outside of its code."""
    found = writing(site.node.text, cursor)
    if found is None:
        return None
    return TemplateItems(found.prefix, tuple(_items(subject, site, found)))


def _items(subject: CheckContext, site: TemplateSite, found: Writing) -> Iterable[Item]:
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


def _names(subject: CheckContext, site: TemplateSite) -> Iterable[Item]:
    names = subject.names
    scopes, labels = scopes_at(site), label_places(site, names)
    for name in sorted(visible(site, names)):
        step = subject.playbook.step(name)
        if name in scopes:
            # Outside of a loop, `iter.parent` still is the iteration of the calling playbook.
            yield Item(name, "scope", SCOPES[name], rank=3 if name == "iter" and not in_iteration(site) else 1)
        elif name in labels and site.step is not None:
            task = site.step.tasks[labels[name]]
            yield Item(name, "task", f"Result of a {task.kind} task.", task_text(task, None), rank=0)
        elif step is not None:
            yield Item(name, "step", "Result of a step.", step_text(step, subject.net), rank=0)
        elif name in names.workload:
            default = subject.playbook.workload.get(name)
            yield Item(name, "key", f"Workload key: {describe_value(default.data if default else None)}", rank=2)
        else:
            yield Item(name, "key", "", rank=2)


def _texts(subject: CheckContext, site: TemplateSite, found: Writing) -> Iterable[Item]:
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
