"""Patches of a replay: values of the failed task that are to be others than the playbook says.

    spec.<field>    a field of the task that failed, such as `spec.url`; `spec.auth` names another credential. Of a
                    workbook task it is the task that was called, and in that one call alone
    input.<name>    what the task or its step is given
    args.<name>     what the arc bound
    item[.<key>]    the item of the loop, or something in it

A patch takes the place of what the playbook says before anything is rendered, so it may hold templates. It stands in the
log, so it may hold no secret. Changes no playbook. Tested in tests/unit/engine/test_patches.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.grammar import task_spec_level
from noetl.dsl.kinds import Kinds
from noetl.dsl.playbook import Playbook, Step, Task, Value
from noetl.dsl.secret_names import is_secret_name
from noetl.model.errors import InvalidInput

ROOTS: Final = ("spec", "input", "args", "item")
Patch = Mapping[str, Any]


def check(
    playbook: Playbook, step: Step, task: str, patch: Patch, kinds: Kinds, *, args: Mapping[str, Any], is_item: bool
) -> None:
    """Refuse a patch that would change nothing of a letter's work, which was bound `args`. Raises InvalidInput."""
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
        failed = _found(step, task)
        own = failed.input if failed is not None else {}
        if root == "input":
            _walk({name: value.data for name, value in {**step.input, **own}.items()}, keys, path)
        if root == "args" and keys[0] not in args and (keys[0] in own or keys[0] in step.input):
            raise InvalidInput(
                f"the patch `{path}` cannot be used: no arc bound `{keys[0]}` to step `{step.name}`. What the task itself "
                f"is given is patched as `input.{rest}`."
            )


def _check_field(path: str, name: str, tasks: list[Task], kinds: Kinds) -> None:
    """Refuse a field that none of the tasks can have: the one that failed, and those that it calls."""
    found = [kinds.get(task.kind) for task in tasks]
    levels = [task_spec_level(kind) for kind in found if kind is not None]
    if len(levels) < len(found) or any(level.open or level.field(name) is not None for level in levels):
        return
    guess = did_you_mean(name, levels[-1].names())
    raise InvalidInput(f"the patch `{path}` cannot be used: kind `{tasks[-1].kind}` has no field `{name}`.{guess}")


def _found(step: Step, task: str) -> Task | None:
    return next((one for one in step.tasks if one.label == task), None)


def _places(playbook: Playbook, step: Step, task: str) -> list[tuple[str, Task]]:
    """Give the task that failed, and those that it calls from the workbook, each with its place: call by call."""
    named: dict[str, Task] = {found.label: found for found in playbook.workbook}
    found, place, places = _found(step, task), "", list[tuple[str, Task]]()
    while found is not None and len(places) <= len(named):
        places.append((place, found))
        place += f"{found.label}/"
        found = named.get(called(found)) if found.kind == "workbook" else None
    return places


def called(task: Task) -> str:
    """Give the name of the workbook task that a task of kind `workbook` calls."""
    return str(task.fields["task"].data if "task" in task.fields else task.label)


def _walk(data: Any, keys: list[str], path: str) -> None:
    for key in keys[:-1]:
        data = data.get(key) if isinstance(data, Mapping) else None
        if data is not None and not isinstance(data, Mapping):
            raise InvalidInput(
                f"the patch `{path}` goes into `{key}`, which is not a map in the playbook; patch `{key}` as a whole."
            )


def patched(step: Step, given_patch: Mapping[str, Any], kinds: Kinds) -> Step:
    """Give a step whose task and input are as the patch of its work says: {task, values}."""
    task, patch = given_patch["task"], given_patch["values"]
    own = _own(patch)
    given = {path.partition(".")[2]: value for path, value in patch.items() if path.startswith("input.")}
    failed = _found(step, task)
    if failed is not None and failed.kind == "workbook":
        mine = ("task", "timeout_ms") if failed.timeout_ms is not None else ("task",)
        own = {path: value for path, value in own.items() if path in mine}
    inner = {path: value for path, value in given.items() if failed and path.partition(".")[0] in failed.input}
    outer = {path: value for path, value in given.items() if path not in inner}
    tasks = tuple(_patched(one, own, inner, kinds) if one.label == task else one for one in step.tasks)
    return replace(step, tasks=tasks, input=_values(step.input, outer))


def patched_calls(playbook: Playbook, step: Step, given_patch: Mapping[str, Any], kinds: Kinds) -> dict[str, Task]:
    """Give the workbook task that a patch changes, by the place of its call."""
    places = _places(playbook, step, given_patch["task"])
    if len(places) < 2:
        return {}
    place, task = places[-1]
    own = {path: value for path, value in _own(given_patch["values"]).items() if path != "task"}
    return {place: _patched(task, own, {}, kinds)}


def _own(patch: Patch) -> dict[str, Any]:
    return {path.partition(".")[2]: value for path, value in patch.items() if path.startswith("spec.")}


def _patched(task: Task, own: Patch, given: Patch, kinds: Kinds) -> Task:
    fields = {path: value for path, value in own.items() if path != "auth"}
    kind = kinds.get(task.kind)
    known = {
        path: value
        for path, value in fields.items()
        if path.partition(".")[0] in task.fields or kind is None or kind.input.field(path.partition(".")[0]) is not None
    }
    rest = {path: value for path, value in fields.items() if path not in known}
    made = replace(
        task, fields=_values(task.fields, known), spec=_values(task.spec, rest), input=_values(task.input, given)
    )
    if "timeout_ms" in rest:
        made = replace(made, timeout_ms=Value(rest["timeout_ms"]))
    return replace(made, auth=Value(own["auth"])) if "auth" in own else made


def _values(values: Mapping[str, Value], patch: Patch) -> dict[str, Value]:
    made = dict(values)
    for path, value in patch.items():
        name, _, rest = path.partition(".")
        made[name] = Value(put_at(made[name].data if name in made else None, rest.split("."), value) if rest else value)
    return made


def put_at(data: Any, keys: list[str], value: Any) -> Any:
    """Give data with another value at a path; maps on the way are copied, and made where there are none."""
    key, rest = keys[0], keys[1:]
    if isinstance(data, list | tuple) and key.isdecimal() and int(key) < len(data):
        made = list(data)
        made[int(key)] = put_at(made[int(key)], rest, value) if rest else value
        return made
    below = dict(data) if isinstance(data, Mapping) else {}
    below[key] = put_at(below.get(key), rest, value) if rest else value
    return below


def patched_items(items: Sequence[Any], given_patch: Mapping[str, Any] | None) -> Sequence[Any]:
    """Give the items of a piece of work as its patch says."""
    return items if given_patch is None else [patched_value(item, given_patch["values"], "item") for item in items]


def patched_value(data: Any, patch: Patch, root: str) -> Any:
    """Give `args` or the item as a patch says."""
    for path, value in patch.items():
        first, _, rest = path.partition(".")
        if first == root:
            data = put_at(data, rest.split("."), value) if rest else value
    return data
