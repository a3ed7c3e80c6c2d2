"""Parts of a result that the server reads, kept inline beside its reference.

`Wanted` is a tree of keys; True means everything below. Tested in tests/unit/engine/plan/test_extract.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from noetl.dsl.tree.playbook import Playbook, Step
from noetl.engine.plan.plan import template

Path = tuple[str | int, ...]
Wanted = Mapping[str | int, Any] | bool
_ENVELOPE: Final = frozenset({"status", "error", "meta", "ref"})


def wanted(paths: Iterable[Path]) -> Wanted:
    """Build the tree of paths."""
    root: dict[str | int, Any] = {}
    for path in paths:
        if not path:
            return True
        node = root
        for key in path[:-1]:
            node = node.setdefault(key, {})
            if node is True:
                break
        else:
            node[path[-1]] = True
    return root


def below(tree: Wanted, *keys: str | int) -> Wanted:
    """Return the part of a tree below keys; False for nothing."""
    for key in keys:
        if isinstance(tree, bool):
            return tree
        tree = tree.get(key, False)
    return tree


def server_reads(playbook: Playbook, name: str) -> Wanted:
    """Return what the server's templates read of a step's result."""
    return wanted(server_paths(playbook, name))


def server_paths(playbook: Playbook, name: str) -> Iterator[Path]:
    """Yield the paths that the server's templates read of a step's result."""
    for step in playbook.workflow:
        yield from _of(step, name)


def _of(step: Step, name: str) -> Iterator[Path]:
    for text in _texts(list(_server_side(step))):
        compiled = template(text)
        for read in compiled.reads if compiled is not None else ():
            path = read.path
            if path[0] == name:
                yield path[1:]
            elif step.name == name and path[0] in ("outcome", "output"):
                yield from _in_envelope(path[1:])
            elif path[0] == "event" and path[1:2] in ((), ("payload",)):
                yield from _in_payload(path[2:])


def _in_envelope(path: Path) -> Iterator[Path]:
    if not path or path[0] in ("data", "result"):
        yield path[1:]
    elif path[0] not in _ENVELOPE:
        yield path


def _in_payload(path: Path) -> Iterator[Path]:
    if not path or path[0] == "result":
        yield path[1:]


def _server_side(step: Step) -> Iterator[Any]:
    for rule in step.admit or ():
        yield rule.when.data if rule.when is not None else None
    if step.loop is not None:
        yield step.loop.items.data if step.loop.items is not None else None
        yield from (value.data for value in step.loop.spec.values())
    yield from (value.data for value in step.spec.values())
    if _reads_input(step):
        yield from (value.data for value in step.input.values())
    yield from (assign.value.data for assign in step.sets)
    for arc in step.arcs:
        yield arc.when.data if arc.when is not None else None
        yield from (value.data for value in arc.args.values())
        yield from (assign.value.data for assign in arc.sets)


def _reads_input(step: Step) -> bool:
    read = [assign.value.data for assign in step.sets]
    for arc in step.arcs:
        read += [arc.when.data if arc.when is not None else None, *(value.data for value in arc.args.values())]
        read += [assign.value.data for assign in arc.sets]
    compiled = (template(text) for text in _texts(read))
    return any(found.path[0] == "input" for one in compiled if one is not None for found in one.reads)


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping | list | tuple):
        for item in data.values() if isinstance(data, Mapping) else data:
            yield from _texts(item)


def for_task(tree: Wanted, label: str) -> Wanted:
    """Return what is read of one task's result: through the step or by its label."""
    tree = merged(tree, below(tree, "data"))
    return merged(tree, below(tree, label), below(tree, "results", label))


def for_item(tree: Wanted) -> bool:
    """Return whether the results of a loop's items are read; then they are whole."""
    return bool(below(merged(tree, below(tree, "data")), "results"))


def merged(*trees: Wanted) -> Wanted:
    """Merge trees."""
    if any(tree is True for tree in trees):
        return True
    found: dict[str | int, Any] = {}
    for tree in trees:
        for key, part in tree.items() if isinstance(tree, Mapping) else ():
            found[key] = merged(found[key], part) if key in found else part
    return found


def pick(value: Any, tree: Wanted) -> Any:
    """Return the wanted part of a value, in the value's own shape.

    As with views, `data` is the value itself if it has no such key, and a missing key is looked up in `data`.
    """
    return _part(value, _as_view(value, tree))


def _as_view(value: Any, tree: Wanted) -> Wanted:
    if isinstance(tree, bool) or not isinstance(value, Mapping):
        return merged(tree, below(tree, "data")) if isinstance(tree, Mapping) else tree
    if "data" in tree and "data" not in value:
        tree = merged({key: part for key, part in tree.items() if key != "data"}, tree["data"])
    inner = value.get("data")
    if isinstance(tree, bool) or not isinstance(inner, Mapping):
        return tree
    missing = {key: part for key, part in tree.items() if key not in value}
    return merged({key: part for key, part in tree.items() if key in value}, {"data": missing} if missing else {})


def _part(value: Any, tree: Wanted) -> Any:
    if isinstance(tree, bool):
        return value if tree else None
    if isinstance(value, Mapping):
        return {key: _part(value[key], part) for key, part in tree.items() if key in value}
    if isinstance(value, list) and tree:
        places = [key for key in tree if isinstance(key, int)]
        if len(places) < len(tree) or min(places) < 0:
            return value
        return [_part(item, tree[at]) if at in tree else None for at, item in enumerate(value[: max(places) + 1])]
    return value
