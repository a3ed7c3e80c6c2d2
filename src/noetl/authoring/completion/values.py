"""Complete values. Tested in tests/unit/authoring/completion/test_values.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.items import Item
from noetl.authoring.language.describe import kind_text, step_text, task_text
from noetl.authoring.language.grammar_at import Spot, options
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.grammar.types import Choice, Flag
from noetl.dsl.tree.playbook import Step


def value_items(reading: Reading, spot: Spot, offset: int) -> list[Item]:
    """Return the values allowed at a position."""
    subject, step = reading.subject, reading.subject.playbook.step(reading.step_at(offset) or "")
    named = _NAMED.get((spot.level_name, spot.field.name if spot.field else spot.key))
    items = list(named(subject, step)) if named else []
    if spot.tool is not None and spot.tool.name == "workbook" and spot.key in ("task", "name"):
        items += workbook_tasks(subject)
    elif spot.tool is not None and spot.tool.name == "playbook" and spot.key == "path":
        items += [Item(path, "playbook", "Playbook in the catalog.") for path in sorted(subject.catalog or ())]
    return [*items, *_words(spot)]


def _words(spot: Spot) -> Iterable[Item]:
    for option in options(spot.type):
        if isinstance(option, Choice):
            default = spot.field.default if spot.field else ""
            for word in option.words:
                yield Item(word, "word", "Default." if word == default else "")
        elif isinstance(option, Flag):
            yield from (Item(word, "word") for word in ("true", "false"))


def step_items(subject: CheckContext, _step: Step | None = None) -> Iterable[Item]:
    for step in subject.playbook.workflow:
        yield Item(step.name, "step", step.desc or "Step.", step_text(step, subject.net))


def _other_steps(subject: CheckContext, step: Step | None) -> Iterable[Item]:
    return (item for item in step_items(subject) if step is None or item.label != step.name)


def _jump_targets(subject: CheckContext, step: Step | None) -> Iterable[Item]:
    for task in step.tasks if step else ():
        yield Item(task.label, "task", f"Task of kind {task.kind}.", task_text(task, subject.kinds.get(task.kind)))
    yield Item("previous", "word", "The task before this one.", rank=2)


def workbook_tasks(subject: CheckContext) -> Iterable[Item]:
    for task in subject.playbook.workbook:
        kind = subject.kinds.get(task.kind)
        yield Item(task.label, "task", task.desc or "Workbook task.", task_text(task, kind))


def kind_items(subject: CheckContext, _step: Step | None = None) -> Iterable[Item]:
    return (Item(name, "kind", kind.summary, kind_text(kind)) for name, kind in sorted(subject.kinds.items()))


def _credentials(subject: CheckContext, _step: Step | None) -> Iterable[Item]:
    return (Item(entry.name, "credential", "Declared under `keychain`.") for entry in subject.playbook.keychain)


def _edges(subject: CheckContext, _step: Step | None) -> Iterable[Item]:
    labels = {arc.label for step in subject.playbook.workflow for arc in step.arcs if arc.label}
    return (Item(f"route_edge:{label}", "word", "Follow the arc with this label.") for label in sorted(labels))


_Names = Callable[[CheckContext, Step | None], Iterable[Item]]
_NAMED: dict[tuple[str, str], _Names] = {
    ("arc", "step"): step_items,
    ("step", "next"): step_items,
    ("step", "compensate"): _other_steps,
    ("executor_spec", "entry_step"): step_items,
    ("executor_spec", "final_step"): step_items,
    ("executor_spec", "on_step_fail"): _edges,
    ("step_spec", "on_step_fail"): _edges,
    ("task_then", "to"): _jump_targets,
    ("task", "kind"): kind_items,
    ("workbook_task", "kind"): kind_items,
    ("cursor", "kind"): kind_items,
    ("requires", "tools"): kind_items,
    ("task", "auth"): _credentials,
    ("workbook_task", "auth"): _credentials,
    ("task_spec", "auth"): _credentials,
    ("cursor", "auth"): _credentials,
}
