"""Patches of a retried dead letter: values that override the playbook.

    spec.<field>    a field of the failed task, such as `spec.url`; `spec.auth` names another credential. For a
                    workbook task it is the called task, in that call only
    input.<name>    an input of the task or its step
    args.<name>     an argument that the arc bound
    item[.<key>]    the item of the loop, or something in it

A patch replaces the value before anything is rendered, so it may contain templates. It is written to the log, so it must
not contain a secret. The playbook does not change. Tested in tests/unit/engine/plan/test_patches.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.grammar import task_spec_level
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.secret_names import is_secret_name
from noetl.dsl.tree.playbook import Playbook, Step, Task, Value
from noetl.model.errors import InvalidInput

ROOTS: Final = ("spec", "input", "args", "item")
Patch = Mapping[str, Any]


def check(
    playbook: Playbook, step: Step, task: str, patch: Patch, kinds: Kinds, *, args: Mapping[str, Any], is_item: bool
) -> None:
    """Validate a patch for a letter's work, bound to `args`. Raises InvalidInput."""
    places = _places(playbook, step, task)
    for path in patch:
        root, _, rest = path.partition(".")
        keys = rest.split(".")
        if root not in ROOTS or (root != "item" and not rest) or "" in path.split("."):
            raise InvalidInput(
                f"the patch `{path}` cannot be used: a path begins with spec, input, args or item, such as spec.url."
            )
        if is_secret_name(path):
            raise InvalidInput(
                f"the patch `{path}` would put a secret into the log. Keep it as a credential, and patch spec.auth "
                "with its name."
            )
        if root == "item" and not is_item:
            raise InvalidInput(f"the patch `{path}` needs an item, and step `{step.name}` failed outside of a loop.")
        if root == "spec" and not places:
            raise InvalidInput(
                f"the patch `{path}` needs the task that failed, and `{task}` is not a task of step `{step.name}` itself."
            )
        if root == "spec":
            _check_field(path, keys[0], [found for _, found in places], kinds)
            _walk({name: value.data for name, value in places[-1][1].fields.items()}, keys, path)
        failed = _find_task(step, task)
        own = failed.input if failed is not None else {}
        if root == "input":
            _walk({name: value.data for name, value in {**step.input, **own}.items()}, keys, path)
        if root == "args" and keys[0] not in args and (keys[0] in own or keys[0] in step.input):
            raise InvalidInput(
                f"the patch `{path}` cannot be used: no arc bound `{keys[0]}` to step `{step.name}`. What the task itself "
                f"is given is patched as `input.{rest}`."
            )


def _check_field(path: str, name: str, tasks: list[Task], kinds: Kinds) -> None:
    kinds_of = [kinds.get(task.kind) for task in tasks]
    levels = [task_spec_level(kind) for kind in kinds_of if kind is not None]
    if len(levels) < len(kinds_of) or any(level.open or level.field(name) is not None for level in levels):
        return
    guess = did_you_mean(name, levels[-1].names())
    raise InvalidInput(f"the patch `{path}` cannot be used: kind `{tasks[-1].kind}` has no field `{name}`.{guess}")


def _find_task(step: Step, task: str) -> Task | None:
    return next((one for one in step.tasks if one.label == task), None)


def _places(playbook: Playbook, step: Step, task: str) -> list[tuple[str, Task]]:
    named: dict[str, Task] = {found.label: found for found in playbook.workbook}
    found, place, places = _find_task(step, task), "", list[tuple[str, Task]]()
    while found is not None and len(places) <= len(named):
        places.append((place, found))
        place += f"{found.label}/"
        found = named.get(called(found)) if found.kind == "workbook" else None
    return places


def called(task: Task) -> str:
    """Return the name of the workbook task that a task of kind `workbook` calls."""
    return str(task.fields["task"].data if "task" in task.fields else task.label)


def _walk(data: Any, keys: list[str], path: str) -> None:
    for key in keys[:-1]:
        data = data.get(key) if isinstance(data, Mapping) else None
        if data is not None and not isinstance(data, Mapping):
            raise InvalidInput(
                f"the patch `{path}` goes into `{key}`, which is not a map in the playbook; patch `{key}` as a whole."
            )


def patched(step: Step, given_patch: Mapping[str, Any], kinds: Kinds) -> Step:
    """Return a step with a patch {task, values} applied to its task and input."""
    task, patch = given_patch["task"], given_patch["values"]
    own = _own(patch)
    inputs = {path.partition(".")[2]: value for path, value in patch.items() if path.startswith("input.")}
    failed = _find_task(step, task)
    if failed is not None and failed.kind == "workbook":
        mine = ("task", "timeout_ms") if failed.timeout_ms is not None else ("task",)
        own = {path: value for path, value in own.items() if path in mine}
    inner = {path: value for path, value in inputs.items() if failed and path.partition(".")[0] in failed.input}
    outer = {path: value for path, value in inputs.items() if path not in inner}
    tasks = tuple(_patched(one, own, inner, kinds) if one.label == task else one for one in step.tasks)
    return replace(step, tasks=tasks, input=_values(step.input, outer))


def patched_calls(playbook: Playbook, step: Step, given_patch: Mapping[str, Any], kinds: Kinds) -> dict[str, Task]:
    """Return the workbook task that a patch changes, by the place of its call."""
    places = _places(playbook, step, given_patch["task"])
    if len(places) < 2:
        return {}
    place, task = places[-1]
    own = {path: value for path, value in _own(given_patch["values"]).items() if path != "task"}
    return {place: _patched(task, own, {}, kinds)}


def _own(patch: Patch) -> dict[str, Any]:
    return {path.partition(".")[2]: value for path, value in patch.items() if path.startswith("spec.")}


def _patched(task: Task, own: Patch, inputs: Patch, kinds: Kinds) -> Task:
    fields = {path: value for path, value in own.items() if path != "auth"}
    kind = kinds.get(task.kind)
    known = {
        path: value
        for path, value in fields.items()
        if path.partition(".")[0] in task.fields or kind is None or kind.input.field(path.partition(".")[0]) is not None
    }
    rest = {path: value for path, value in fields.items() if path not in known}
    result = replace(
        task, fields=_values(task.fields, known), spec=_values(task.spec, rest), input=_values(task.input, inputs)
    )
    if "timeout_ms" in rest:
        result = replace(result, timeout_ms=Value(rest["timeout_ms"]))
    return replace(result, auth=Value(own["auth"])) if "auth" in own else result


def _values(values: Mapping[str, Value], patch: Patch) -> dict[str, Value]:
    patched = dict(values)
    for path, value in patch.items():
        name, _, rest = path.partition(".")
        patched[name] = Value(
            put_at(patched[name].data if name in patched else None, rest.split("."), value) if rest else value
        )
    return patched


def put_at(data: Any, keys: list[str], value: Any) -> Any:
    """Return a copy of data with a value at a path, creating missing maps."""
    key, rest = keys[0], keys[1:]
    if isinstance(data, list | tuple) and key.isdecimal() and int(key) < len(data):
        items = list(data)
        items[int(key)] = put_at(items[int(key)], rest, value) if rest else value
        return items
    below = dict(data) if isinstance(data, Mapping) else {}
    below[key] = put_at(below.get(key), rest, value) if rest else value
    return below


def patched_items(items: Sequence[Any], given_patch: Mapping[str, Any] | None) -> Sequence[Any]:
    """Return the items of a work item with its patch applied."""
    return items if given_patch is None else [patched_value(item, given_patch["values"], "item") for item in items]


def patched_value(data: Any, patch: Patch, root: str) -> Any:
    """Return `args` or the item with a patch applied."""
    for path, value in patch.items():
        first, _, rest = path.partition(".")
        if first == root:
            data = put_at(data, rest.split("."), value) if rest else value
    return data
