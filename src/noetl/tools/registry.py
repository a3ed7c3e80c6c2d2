"""Tool kinds by name, each loaded on first use.

Checking a playbook imports only the kinds that it uses. Packages are searched for a name that is not built in, or when
all names are listed. A package's kind that cannot be loaded is skipped and reported in `problems`.
Tested in tests/tools/test_registry.py and test_third_party.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from noetl.dsl.grammar.kinds import Kind

if TYPE_CHECKING:  # checking a playbook runs no tool
    from noetl.model.outcome import Outcome
    from noetl.ports import Runner, ToolContext


class ToolKinds(Mapping[str, Kind]):
    """Built-in kinds from a table of modules, others from an entry point group."""

    def __init__(self, modules: Mapping[str, str], group: str) -> None:
        self._modules = modules
        self._group = group
        self._loaded: dict[str, Kind] = {}
        self._added: dict[str, Kind] | None = None
        self._runners: dict[str, Runner | None] = {}
        self._homes: dict[str, str] = {}  # modules of packages, by kind
        self._problems: list[str] = []

    def __getitem__(self, name: str) -> Kind:
        if name not in self._modules:
            return self._from_packages()[name]
        if name not in self._loaded:
            kind = import_module(self._modules[name]).KIND
            assert isinstance(kind, Kind)
            self._loaded[name] = kind
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in self._from_packages()

    def __iter__(self) -> Iterator[str]:
        yield from self._modules
        yield from self._from_packages()

    def __len__(self) -> int:
        return len(self._modules) + len(self._from_packages())

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems with kinds of packages; empty until a name not built in is looked up."""
        return tuple(self._problems)

    def runner(self, kind: str) -> Runner | None:
        """Return what runs a kind; None if it is unknown or not run by workers."""
        if kind not in self._runners:
            known = kind in self
            self._runners[kind] = (
                _runner(import_module(self._modules.get(kind) or self._homes[kind])) if known else None
            )
        return self._runners[kind]

    def _from_packages(self) -> dict[str, Kind]:
        if self._added is None:
            from importlib.metadata import entry_points  # slow to import, and seldom needed

            self._added = {}
            for entry in sorted(entry_points(group=self._group), key=lambda one: (one.name, one.value)):
                owner = f"package '{entry.dist.name}'" if entry.dist else "a package"
                problem = self._add(entry.name, entry.value, entry.dist.version if entry.dist else "")
                if problem:
                    self._problems.append(
                        f"The tool kind '{entry.name}' of {owner} ({entry.value}) was skipped: {problem} "
                        "Update or remove the package."
                    )
        return self._added

    def _add(self, name: str, module: str, version: str) -> str | None:
        """Add a package's kind, or return why that is not possible."""
        assert self._added is not None
        if name in self._modules:
            return "a built-in kind has that name."
        if name in self._added:
            return "another package has a kind of that name."
        if ":" in module:
            return "its entry point must name a module, without a colon."
        try:
            kind = getattr(import_module(module), "KIND", None)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - third-party code may fail in any way
            return f"loading it fails with {type(error).__name__}: {error}."
        if not isinstance(kind, Kind):
            return "its module has no KIND made by noetl.tools.contract.describe."
        if kind.name != name:
            return f"its KIND has another name, '{kind.name}'."
        self._added[name] = replace(kind, version=version)
        self._homes[name] = module
        return None


def _runner(module: ModuleType) -> Runner | None:
    """Return a runner of the kind; fields that do not fit are a failed outcome."""
    run = getattr(module, "run", None)
    if run is None:
        return None

    from inspect import iscoroutinefunction

    from noetl.model.outcome import Outcome, raised

    read = _reader(module)

    async def read_and_run(fields: Mapping[str, Any], context: ToolContext) -> Outcome:
        given = read(fields)
        if isinstance(given, Outcome):
            return given
        try:
            found: Outcome = await run(given, context)
        except Exception as error:
            told = raised(error)
            if told is None:
                raise
            return told
        return found

    def read_and_call(fields: Mapping[str, Any], context: ToolContext) -> Outcome:
        given = read(fields)
        if isinstance(given, Outcome):
            return given
        try:
            found: Outcome = run(given, context)
        except Exception as error:
            told = raised(error)
            if told is None:
                raise
            return told
        return found

    return read_and_run if iscoroutinefunction(run) else read_and_call


def _reader(module: ModuleType) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function that decodes fields to the model, or to a failed outcome."""
    from msgspec import NODEFAULT, ValidationError
    from msgspec.structs import fields as fields_of

    from noetl.engine.tasks.actions import Written
    from noetl.model.outcome import failed
    from noetl.tools.contract import decode

    # A decoded model of scalars is immutable, so it can be cached on the written input.
    keeps = all(field.default_factory is NODEFAULT for field in fields_of(module.Input))

    def read(fields: Mapping[str, Any]) -> Any:
        written = fields if isinstance(fields, Written) else None
        if written is not None and written.read is not None:
            return written.read
        try:
            found = decode(module.Input, module.KIND.input, fields)
        except ValidationError as error:
            return failed("schema", f"the task's inputs do not fit the kind `{module.KIND.name}`: {error}")
        if written is not None and keeps:
            written.read = found
        return found

    return read
