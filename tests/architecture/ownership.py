"""Find writes to foreign fields and reads of private attributes.

A *foreign write* changes a field of an object from outside the module that defines its class: an assignment, a deletion,
an item assignment to a container field, a mutating call on one (`x.items.append(…)`), or `setattr`. The class is resolved
by the annotation of the variable where there is one, and by the field's name among all classes of src otherwise. Objects
that the same function has constructed, and `self` and `cls`, are not foreign.

A *private read* names `x._field` where neither `x` is `self` or `cls` nor the module defines `_field`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from tests.architecture.source import Module

CONTAINERS = {
    "list", "dict", "set", "deque", "defaultdict", "Counter", "OrderedDict", "bytearray", "MutableMapping",
    "MutableSequence", "MutableSet",
}  # fmt: skip
MUTATORS = {
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "move_to_end", "pop", "popitem",
    "popleft", "remove", "reverse", "setdefault", "sort", "subtract", "update",
}  # fmt: skip
NAMEDTUPLE = {"_asdict", "_fields", "_make", "_replace"}  # public, in spite of their names
DOCUMENTED = {"os._exit"}  # likewise
# Records of plain state without rules of their own, and the only modules that may write them.
RECORDS = {
    "noetl.engine.state.execution": (
        ("noetl.engine.state.evolve", "noetl.engine.state.lineage"),
        "the state of an execution is what `evolve` folds out of its events",
    ),
    "noetl.stores.memory.tables": (
        ("noetl.stores.memory.store", "noetl.stores.memory.catalog", "noetl.stores.memory.dead_letters",
         "noetl.stores.memory.outbox", "noetl.stores.memory.team", "noetl.stores.memory.derived"),
        "the tables of the memory store are to its classes what a database is to the others",
    ),
    "noetl.dsl.formatter.cst": (
        ("noetl.dsl.formatter.", "noetl.dsl.upgrade."),
        "the formatter's tree is rearranged in passes, one module each, and an upgrade rebuilds it",
    ),
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Violation(NamedTuple):
    """One reach into another module: the file, what it touches, and the line."""

    path: str
    touched: str
    line: int


@dataclass
class Fields:
    """The fields of one class with their annotated types."""

    module: str
    bases: tuple[str, ...] = ()
    types: dict[str, str | None] = field(default_factory=dict)
    containers: set[str] = field(default_factory=set)

    def declare(self, name: str, annotation: ast.expr | None, value: ast.expr | None) -> None:
        kind = type_name(annotation) or (type_name(value.func) if isinstance(value, ast.Call) else None)
        self.types[name] = self.types.get(name) or kind
        literal = isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp)
        if kind in CONTAINERS or (annotation is None and literal):
            self.containers.add(name)


def type_name(node: ast.expr | None) -> str | None:
    """Return the class that an annotation names: `A` of `A`, `"A | None"` and `b.A`."""
    match node:
        case ast.Constant(value=str() as text):
            try:
                return type_name(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return None
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value, slice=inner):
            outer = type_name(value)
            return type_name(inner) if outer in {"Annotated", "ClassVar", "Final", "Optional"} else outer
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return type_name(right) if isinstance(left, ast.Constant) and left.value is None else type_name(left)
    return None


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None, ast.expr | None]]:
    """Yield the targets of an assignment, each with its annotation and its value."""
    if isinstance(node, ast.Assign):
        yield from ((target, None, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign):
        yield node.target, node.annotation, node.value


def fields_of(node: ast.ClassDef, module: str) -> Fields:
    """Collect the fields that a class declares in its body and on `self`."""
    found = Fields(module, tuple(filter(None, map(type_name, node.bases))))
    for item in node.body:
        for target, annotation, value in assignments(item):
            if isinstance(target, ast.Name):
                found.declare(target.id, annotation, value)
    for method in (item for item in node.body if isinstance(item, Function)):
        annotations = parameters(method)
        for target, annotation, value in chain.from_iterable(map(assignments, ast.walk(method))):
            if isinstance(target, ast.Attribute) and is_self(target.value):
                passed = annotations.get(value.id) if isinstance(value, ast.Name) else None
                found.declare(target.attr, annotation or passed, value)
    return found


def parameters(function: Function) -> dict[str, ast.expr]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {argument.arg: argument.annotation for argument in every if argument.annotation is not None}


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


class Code:
    """All modules: their classes by name, and the classes that declare each field."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules = tuple(modules)
        self.classes: dict[str, list[Fields]] = defaultdict(list)
        self.by_field: dict[str, list[tuple[str, Fields]]] = defaultdict(list)
        for module in self.modules:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    fields = fields_of(node, module.name)
                    self.classes[node.name].append(fields)
                    for name in fields.types:
                        self.by_field[name].append((node.name, fields))

    def owners(self, name: str, kind: str | None) -> list[tuple[str, Fields]]:
        """Return the classes whose field this may be: all of them if no type is known."""
        if kind is None:
            return self.by_field.get(name, [])
        own = [(kind, fields) for fields in self.classes.get(kind, []) if name in fields.types]
        bases = {base for fields in self.classes.get(kind, []) for base in fields.bases} - {kind}
        return own or [owner for base in sorted(bases) for owner in self.owners(name, base)]

    def foreign_writes(self) -> Iterator[Violation]:
        for module in self.modules:
            yield from Writes(self, module).found()

    def private_reads(self) -> Iterator[Violation]:
        for module in self.modules:
            yield from private_reads(module)


class Writes:
    """The foreign writes of one module."""

    def __init__(self, code: Code, module: Module) -> None:
        self._code = code
        self._module = module
        self._imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }

    def found(self) -> Iterator[Violation]:
        yield from self._scope(self._module.tree, {}, None)

    def _scope(self, scope: ast.AST, types: Mapping[str, str | None], owner: Fields | None) -> Iterator[Violation]:
        """Walk one scope with the types of its names, then each scope within it."""
        for node in children(scope):
            if isinstance(node, ast.ClassDef):
                yield from self._scope(node, types, fields_of(node, self._module.name))
            elif isinstance(node, Function):
                known = {**types, **{name: type_name(given) or "" for name, given in parameters(node).items()}}
                yield from self._scope(node, {**known, **local_types(node)}, owner)
            else:
                for target in written(node):
                    yield from self._judge(target, node, types, owner)

    def _judge(
        self, target: Write, node: ast.AST, types: Mapping[str, str | None], owner: Fields | None
    ) -> Iterator[Violation]:
        value = target.owner
        if is_self(value) or (isinstance(value, ast.Name) and value.id in self._imported):
            return
        kind = self._type(value, types, owner)
        if kind == CONSTRUCTED:
            return
        classes = self._code.owners(target.name, kind)
        if target.in_place:
            classes = [(name, fields) for name, fields in classes if target.name in fields.containers]
        if classes and not any(self._may_write(fields.module) for _, fields in classes):
            name = classes[0][0] if len({name for name, _ in classes}) == 1 else "?"
            yield Violation(self._module.path, f"{name}.{target.name}", getattr(node, "lineno", 0))

    def _may_write(self, owner: str) -> bool:
        writers = RECORDS.get(owner, ((), ""))[0]
        return owner == self._module.name or self._module.name.startswith(tuple(writers))

    def _type(self, value: ast.expr, types: Mapping[str, str | None], owner: Fields | None) -> str | None:
        if isinstance(value, ast.Name):
            return types.get(value.id)
        if isinstance(value, ast.Attribute):
            if is_self(value.value):
                return owner.types.get(value.attr) if owner else None
            outer = self._type(value.value, types, owner)
            for fields in self._code.classes.get(outer, []) if outer else []:
                if value.attr in fields.types:
                    return fields.types[value.attr]
        return None


CONSTRUCTED = "(constructed here)"


class Write(NamedTuple):
    """One write: the expression before the dot, the field, and whether in place."""

    owner: ast.expr
    name: str
    in_place: bool


def children(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield every node of a scope, without entering nested functions and classes."""
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            todo[:0] = ast.iter_child_nodes(node)


def local_types(function: Function) -> dict[str, str]:
    """Return the types of locals that an annotation or a constructor call shows."""
    found: dict[str, str] = {}
    for node in children(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = type_name(node.annotation) or ""
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name = type_name(node.value.func)
            if name and name.lstrip("_")[:1].isupper():
                found |= {target.id: CONSTRUCTED for target in node.targets if isinstance(target, ast.Name)}
    return found


def written(node: ast.AST) -> Iterator[Write]:
    """Yield the fields that one node writes."""
    match node:
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            yield Write(node.value, node.attr, False)
        case ast.Subscript(value=ast.Attribute() as inner, ctx=ast.Store() | ast.Del()):
            yield Write(inner.value, inner.attr, True)
        case ast.Call(func=ast.Attribute(value=ast.Attribute() as inner, attr=method)) if method in MUTATORS:
            yield Write(inner.value, inner.attr, True)
        case ast.Call(func=function, args=[owner, ast.Constant(value=str() as name), *_]):
            if type_name(function) in {"setattr", "delattr", "__setattr__", "__delattr__"}:
                yield Write(owner, name, False)


def private_reads(module: Module) -> Iterator[Violation]:
    """Yield every private attribute or name that a module takes from elsewhere."""
    own = defined(module.tree)
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=value, attr=name) if not is_self(value) and not is_super(value):
                if private(name) and name not in own and f"{ast.unparse(value)}.{name}" not in DOCUMENTED:
                    yield Violation(module.path, f"{ast.unparse(value)}.{name}", node.lineno)
            case ast.ImportFrom(module=str() as origin, names=names) if origin != "__future__":
                for alias in names:
                    if private(alias.name):
                        yield Violation(module.path, f"{origin}.{alias.name}", node.lineno)
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[owner, ast.Constant(value=str() as name), *_]):
                if private(name) and name not in own and not is_self(owner):
                    yield Violation(module.path, f"{ast.unparse(owner)}.{name}", node.lineno)


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMEDTUPLE and name != "_"


def is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def defined(tree: ast.Module) -> set[str]:
    """Return the names that a module defines, those of its classes' fields included."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=value, attr=name, ctx=ast.Store()) if is_self(value):
                found.add(name)
    return found
