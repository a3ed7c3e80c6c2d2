"""Finds the names of a playbook's own things inside its templates. A part of `occurrences`, tested with it."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.playbook import Step
from noetl.dsl.references import Reference
from noetl.dsl.scopes import FINAL_ARGS
from noetl.dsl.sites import Site
from noetl.dsl.subject import Subject
from noetl.lsp.expression import tokens
from noetl.lsp.things import Occurrence, Thing, ThingKind, part

_OF_STEPS = frozenset({"done", "ok", "fail"})
# What a key below a scope is; those of `iter`, `step`, `args` and `input` belong to the step around.
_BELOW: dict[str, ThingKind] = {
    "workload": "workload",
    "ctx": "ctx",
    "vars": "ctx",
    "iter": "iter",
    "step": "scratch",
    "args": "input",
    "input": "input",
    "keychain": "credential",
}
_OWNED = frozenset({"iter", "scratch", "input"})


def in_templates(subject: Subject) -> Iterator[Occurrence]:
    """Give every mention inside a template."""
    for reference in subject.references:
        for depth, thing in _mentions(subject, reference):
            found = _element(subject, reference, depth, thing)
            if found is not None:
                yield found
    for site in subject.sites:
        yield from _asked_for(subject, site)


def _mentions(subject: Subject, reference: Reference) -> Iterator[tuple[int, Thing]]:
    """Give the things that the elements of a path name, each with its place in the path."""
    meaning = reference.means[0] if reference.means else None
    site, name = reference.site, reference.name
    owner = site.step.name if site.step else ""
    match meaning:
        case "scope":
            yield from _below_scope(subject, reference, owner)
        case "step":
            yield 0, Thing("step", name)
            yield from _labels(reference, subject.playbook.step(name), 1)
        case "label":
            yield 0, Thing("task", name, owner)
        case "iter":
            yield 0, _iteration(site.step, name, owner)
        case "input":
            yield 0, Thing("input", name, owner)
            yield from _final_results(subject, reference, 0)
        case "ctx":
            yield 0, Thing("ctx", name)
        case "workload":
            yield 0, Thing("workload", name)


def _below_scope(subject: Subject, reference: Reference, owner: str) -> Iterator[tuple[int, Thing]]:
    if reference.name in ("outcome", "output") and reference.site.task is None:
        depth = 2 if reference.key in ("result", "data") else 1
        yield from _labels(reference, reference.site.step, depth)
    kind, key = _BELOW.get(reference.name), reference.key
    if kind is None or key is None:
        return
    if kind == "iter":
        yield 1, _iteration(reference.site.step, key, owner)
    else:
        yield 1, Thing(kind, key, owner if kind in _OWNED else "")
    if kind == "input":
        yield from _final_results(subject, reference, 1)


def _iteration(step: Step | None, key: str, owner: str) -> Thing:
    is_iterator = step is not None and step.loop is not None and step.loop.iterator == key
    return Thing("iterator" if is_iterator else "iter", key, owner)


def _labels(reference: Reference, step: Step | None, depth: int) -> Iterator[tuple[int, Thing]]:
    """Give the label in `step.results.<label>` or `step.<label>`; the result of a loop has none."""
    if step is None or step.loop is not None:
        return
    path, labels = reference.read.path, {task.label for task in step.tasks}
    if len(path) > depth and path[depth] == "data" and "data" not in labels:
        depth += 1
    if len(path) > depth and path[depth] == "results" and "results" not in labels:
        depth += 1
    if len(path) > depth and path[depth] in labels:
        yield depth, Thing("task", str(path[depth]), step.name)


def _final_results(subject: Subject, reference: Reference, depth: int) -> Iterator[tuple[int, Thing]]:
    """Give the step in `args.results.<step>` of the final step."""
    path, step = reference.read.path, reference.site.step
    final = subject.playbook.executor.setting("final_step")
    is_final = step is not None and step.name == final and "results" in FINAL_ARGS
    if is_final and len(path) > depth + 1 and path[depth] == "results" and isinstance(path[depth + 1], str):
        yield depth + 1, Thing("step", str(path[depth + 1]))


def _element(subject: Subject, reference: Reference, depth: int, thing: Thing) -> Occurrence | None:
    """Give the mention that an element of a path is; None where its letters are not found in the text."""
    text, name = reference.site.node.text, thing.name
    offset = reference.read.offsets[depth]
    if text[offset : offset + 1] in ("'", '"'):
        offset += 1
    if not text.startswith(name, offset):
        return None
    return part(subject, reference.site.node, offset, thing, length=len(name))


def _asked_for(subject: Subject, site: Site) -> Iterator[Occurrence]:
    """Give the steps in `done('x')`, `ok('x')` and `fail('x')`."""
    if site.template is None or not any(word in site.node.text for word in _OF_STEPS):
        return
    code = tokens(site.node.text)
    for number in range(len(code) - 2):
        function, bracket, name = code[number : number + 3]
        is_method = number > 0 and code[number - 1].text == "."
        if function.text in _OF_STEPS and bracket.text == "(" and name.kind == "text" and not is_method:
            yield part(subject, site.node, name.start + 1, Thing("step", name.value), length=len(name.value))
