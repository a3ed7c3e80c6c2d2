"""Prepare playbooks to run: read, check and register them.

A `kind: playbook` task can name a file relative to its caller; it is replaced by the called playbook's path, so that the log has
catalog paths only. Tested in tests/acceptance/executions/test_run_children.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from noetl.cli.arguments.files import load_file
from noetl.cli.playbooks.disk_catalog import DiskCatalog, catalog_path
from noetl.cli.runtime.terminal import echo
from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.tree.pin import pinned
from noetl.dsl.tree.playbook import Playbook, Task, Value
from noetl.model.errors import InvalidInput, InvalidPlaybook

if TYPE_CHECKING:
    from noetl.ports import Catalog


class Prepared(Struct, frozen=True):
    """Checked playbook: tree, source text, canonical form and its hash."""

    tree: Playbook
    content: bytes
    canonical: bytes
    playbook: str

    @property
    def path(self) -> str:
        return self.tree.path


class Preparer(Struct):
    """Reads playbooks and those they call, each file once."""

    folder: Path
    on_text: Callable[[bytes], None] = lambda _: None  # called with each playbook's text before it is checked
    tolerant: bool = False  # unknown keys are warnings, and left out
    found: dict[Path, Prepared | None] = {}

    def prepare(self, name: str, only: str | None = None, quiet: bool = False) -> Prepared:
        """Check a playbook and those it calls; `only` keeps one step. Raises InvalidInput."""
        content = load_file(name)
        self.on_text(content)
        file = self.folder / "-" if name == "-" else Path(name).resolve()
        catalog = DiskCatalog(self.folder, file.parent)
        self.found[file] = None  # a playbook that calls itself is not read again
        tree = _check(content, "<stdin>" if name == "-" else name, catalog, quiet, self.tolerant)
        tree = tree if only is None else _keep_step(tree, only)
        _require_available(tree, name)
        tree = self._with_calls(tree, catalog)
        canonical, playbook = pinned(tree)
        made = self.found[file] = Prepared(tree, content, canonical, playbook)
        return made

    def _with_calls(self, tree: Playbook, catalog: DiskCatalog) -> Playbook:
        steps = tuple(
            replace(step, tasks=tuple(self._with_path(task, catalog) for task in step.tasks)) for step in tree.workflow
        )
        return replace(tree, workflow=steps, workbook=tuple(self._with_path(task, catalog) for task in tree.workbook))

    def _with_path(self, task: Task, catalog: DiskCatalog) -> Task:
        path = task.fields["path"].data if task.kind == "playbook" and "path" in task.fields else None
        if not isinstance(path, str):
            return task
        if "{{" in path or "{%" in path:
            for each in catalog:  # a template can name any of them; errors surface on the call
                with suppress(InvalidInput):
                    self._prepare_once(catalog.file(each), quiet=True)
            return task
        named = self._prepare_once(catalog.file(path))
        return task if named is None else replace(task, fields={**task.fields, "path": Value(named)})

    def _prepare_once(self, file: Path | None, quiet: bool = False) -> str | None:
        if file is None:
            return None
        if file in self.found:
            made = self.found[file]
            return made.path if made is not None else catalog_path(file)
        return self.prepare(str(file), quiet=quiet).path

    @property
    def files(self) -> dict[str, str]:
        """The files of the prepared playbooks by path, relative to the folder."""
        made = {one.path: file for file, one in self.found.items() if one is not None and file.name != "-"}
        below = (file.is_relative_to(self.folder) for file in made.values())
        return {
            path: str(file.relative_to(self.folder) if inside else file)
            for (path, file), inside in zip(made.items(), below, strict=True)
        }

    async def register(self, catalog: Catalog, now: int) -> None:
        """Register every prepared playbook in a catalog."""
        for made in self.found.values():
            if made is not None:
                await catalog.register(made.path, made.content, made.canonical, made.playbook, now)


def _check(content: bytes, name: str, catalog: DiskCatalog, quiet: bool, tolerant: bool) -> Playbook:
    from noetl.cli.output.diagnostics import Report, print_text
    from noetl.dsl.checking.context import CheckContext
    from noetl.dsl.reading.parse import parse
    from noetl.dsl.tree.normalize.subscription import is_subscription
    from noetl.dsl.validate import examine, tolerate
    from noetl.wiring.embedded import language_kinds

    subject = CheckContext(parse(content, name), language_kinds(), catalog)
    found, subject = tolerate(subject) if tolerant else (examine(subject), subject)
    if is_subscription(subject.root):
        raise InvalidInput(f"{name} is a subscription, which a server reads: `noetl register {name}`.")
    errors = tuple(one for one in found if one.severity == "error")
    if errors:
        report = Report()
        report.add(name, content, errors)
        if not quiet:
            print_text(report, err=True)
        raise InvalidPlaybook(f"{name} has errors; nothing was run.")
    if not quiet and any(one.code in ("NOE801", "NOE802") for one in found):
        echo(f"noetl: {name} is in an older dialect, and runs as it is; see `noetl upgrade {name}`.", err=True)
    warnings = sum(one.severity == "warning" for one in found)
    if warnings and not quiet:
        count = "1 warning" if warnings == 1 else f"{warnings} warnings"
        echo(f"noetl: {count} in {name}; see `noetl validate {name}`.", err=True)
    return subject.playbook


def _require_available(tree: Playbook, name: str) -> None:
    from noetl.dsl.checking.requirements import lacking
    from noetl.wiring.availability import unavailable
    from noetl.wiring.embedded import cannot_run

    missing = lacking(tree, cannot_run, unavailable)
    if missing is not None:
        raise InvalidPlaybook(f"{name}: {missing}.")


def _keep_step(tree: Playbook, name: str) -> Playbook:
    step = tree.step(name)
    if step is None:
        names = [known.name for known in tree.workflow]
        raise InvalidInput(
            f"The playbook has no step `{name}`.{did_you_mean(name, names)} Its steps: {', '.join(names)}."
        )
    if not step.tasks:
        raise InvalidInput(f"The step `{name}` only routes; it has nothing to run.")
    spec = {key: value for key, value in tree.executor.spec.items() if key not in ("entry_step", "final_step")}
    alone = replace(step, router=None, compensate=None, admit=None)
    return replace(tree, workflow=(alone,), executor=replace(tree.executor, spec=spec), rollback=None)
