"""Mutate one rule of a module at a time and list the mutants that no test kills.

    python scripts/mutate.py src/noetl/engine/routing/join.py                      every mutant of a module
    python scripts/mutate.py src/noetl/engine/*.py --most 100 --seed 7     a random hundred
    python scripts/mutate.py src/noetl/engine/routing/join.py --only 120:          those from line 120 on

The tests are collected and traced once. For every mutant a forked process swaps the code of its functions and runs the
tests that execute that line, until one fails. No file is changed. A surviving mutant is a rule without a test, or code
without an effect. `make test` does not run it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parent.parent
TESTS = ["tests/scenarios", "tests/unit/engine", "-k", "not sqlite and not its_playbooks"]
LONGEST_S = 30  # that the tests of one change may take
_FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """One change of a module."""

    path: Path
    line: int
    before: str
    after: str
    text: str


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data = source.encode()
    for node, after in _changes(ast.parse(source)):
        if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno is None or node.end_col_offset is None:
            continue
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        before = data[begin:end].decode()
        text = (data[:begin] + after.encode() + data[end:]).decode()
        yield Mutant(path, node.lineno, " ".join(before.split()), after, text)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield node, f"({_with(node, ops=[_FLIPS[type(node.ops[0])]()])})"
        elif isinstance(node, ast.BoolOp):
            yield node, f"({_with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())})"
            for index in range(len(node.values)):
                yield node, f"({_with(node, values=node.values[:index] + node.values[index + 1 :])})"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, f"bool({ast.unparse(node.operand)})"
        elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare | ast.BoolOp):
            yield node.test, f"(not ({ast.unparse(node.test)}))"
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield node, repr(not node.value if isinstance(node.value, bool) else node.value + 1)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            yield node, f"({_with(node, op=ast.Sub() if isinstance(node.op, ast.Add) else ast.Add())})"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            yield node.func, "max" if node.func.id == "min" else "min"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("sorted", "reversed"):
            yield node, f"list({ast.unparse(node.args[0])})"
        elif isinstance(node, ast.Break | ast.Continue) or _acts(node):
            yield node, "pass"


def _acts(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, ast.AugAssign | ast.Delete) or (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    )


def _with(node: ast.AST, **changed: object) -> str:
    made = type(node)(**{name: getattr(node, name) for name in node._fields} | changed)
    return ast.unparse(ast.fix_missing_locations(ast.copy_location(made, node)))


def functions(owner: ModuleType | type, module: str) -> Iterator[tuple[str, FunctionType]]:
    """Return the functions and methods of a module by their qualified names."""
    for name, value in vars(owner).items():
        found = next((getattr(value, inner) for inner in ("fget", "func", "__func__") if hasattr(value, inner)), value)
        if isinstance(found, FunctionType) and found.__module__ == module:
            yield f"{owner.__name__}.{name}", found
        elif isinstance(found, type) and found.__module__ == module and found is not owner:
            yield from functions(found, module)


def swap(mutant: Mutant) -> None:
    """Swap the code of a loaded module's functions for that of its mutant."""
    name = ".".join(mutant.path.relative_to(ROOT / "src").with_suffix("").parts)
    module = importlib.import_module(name)
    changed = ModuleType(name)
    changed.__file__ = str(mutant.path)
    sys.modules[name] = changed  # dataclasses look themselves up
    exec(compile(mutant.text, str(mutant.path), "exec"), changed.__dict__)  # noqa: S102
    sys.modules[name] = module
    for key, value in vars(changed).items():
        if isinstance(value, int | float | str | frozenset):
            setattr(module, key, value)
    new = dict(functions(changed, name))
    for key, function in functions(module, name):
        if key in new:
            function.__code__ = new[key].__code__
            function.__defaults__ = new[key].__defaults__


class Mutation:
    """A pytest plug-in that runs the collected tests against every change."""

    def __init__(self, changes: list[Mutant]) -> None:
        self.changes = changes
        self.alive: list[Mutant] = []
        self._passing: dict[tuple[str, int], list[tuple[float, int]]] = defaultdict(list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        files = {str(mutant.path) for mutant in self.changes}
        for number, item in enumerate(session.items):
            lines, took = self._traced(item, files)
            for place in lines:
                self._passing[place].append((took, number))
        running: dict[int, Mutant] = {}
        for mutant in self.changes:
            if len(running) >= int(os.environ.get("JOBS", "2")):
                self._reap(running)
            running[self._fork(mutant, session.items)] = mutant
        while running:
            self._reap(running)
        return True

    def _traced(self, item: pytest.Item, files: set[str]) -> tuple[set[tuple[str, int]], float]:
        seen: set[tuple[str, int]] = set()

        def local(frame: FrameType, _event: str, _arg: Any) -> Any:
            seen.add((frame.f_code.co_filename, frame.f_lineno))
            return local

        def calls(frame: FrameType, _event: str, _arg: Any) -> Any:
            return local(frame, "", None) if frame.f_code.co_filename in files else None

        begun = time.perf_counter()
        sys.settrace(calls)
        try:
            reports = runtestprotocol(item, log=False)
        finally:
            sys.settrace(None)
        if any(report.failed for report in reports):
            raise pytest.UsageError(f"{item.nodeid} fails without any change")
        return seen, time.perf_counter() - begun

    def _fork(self, mutant: Mutant, items: list[pytest.Item]) -> int:
        child = os.fork()
        if child:
            return child
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        signal.signal(signal.SIGALRM, lambda *_: os._exit(3))
        signal.alarm(LONGEST_S)
        try:
            swap(mutant)
            lines = {line for path, line in self._passing if path == str(mutant.path) and line == mutant.line}
            if not lines:  # the line of an expression that goes over several; what is above every function is for all
                lines = {line for path, line in self._passing if path == str(mutant.path) and line <= mutant.line}
                lines = {max(lines)} if lines else {line for path, line in self._passing if path == str(mutant.path)}
            for _, number in sorted(set().union(*(self._passing[str(mutant.path), line] for line in lines))):
                if any(report.failed for report in runtestprotocol(items[number], log=False)):
                    os._exit(1)
        except BaseException:  # noqa: BLE001
            os._exit(2)
        os._exit(0)

    def _reap(self, running: dict[int, Mutant]) -> None:
        child, status = os.wait()
        mutant = running.pop(child)
        if os.waitstatus_to_exitcode(status) == 0:
            self.alive.append(mutant)
            place = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
            print(f"{place}: nobody notices `{mutant.before}` → `{mutant.after}`", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("paths", nargs="+", type=Path)
    asked.add_argument("--most", type=int, default=0, help="how many changes at most, chosen at random")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--only", default="", help="FIRST:LAST line, both optional")
    asked.add_argument("--tests", nargs="*", default=TESTS, help="what to give to pytest")
    given = asked.parse_args()
    first, _, last = given.only.partition(":")
    found = [mutant for path in given.paths for mutant in mutants(path.resolve())]
    found = [mutant for mutant in found if int(first or 0) <= mutant.line <= int(last or 10**9)]
    if given.most and given.most < len(found):
        found = random.Random(given.seed).sample(found, given.most)
    mutation = Mutation(found)
    code = pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", *given.tests], plugins=[mutation])
    alive = len(mutation.alive)
    print(f"{len(found)} changes, {len(found) - alive} noticed, {alive} not")
    sys.exit(code if code != pytest.ExitCode.OK else 1 if alive else 0)


if __name__ == "__main__":
    main()
