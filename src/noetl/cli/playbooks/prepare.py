"""Playbooks that are about to run: read, checked, and put into the store's catalog together with those they call.

A `kind: playbook` task may name a file beside its caller; here that becomes the called playbook's own path, so that the log
speaks of catalog paths only. Tested in tests/acceptance/test_run_children.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from msgspec import Struct
from msgspec.structs import replace

from noetl.cli.common.files import FileTrouble, read_playbook
from noetl.cli.playbooks.disk_catalog import DiskCatalog
from noetl.dsl.pin import pinned
from noetl.dsl.playbook import Playbook, Task, Value
from noetl.model.errors import InvalidInput, InvalidPlaybook

if TYPE_CHECKING:
    from noetl.ports import Catalog


class Prepared(Struct, frozen=True):
    """A playbook that can run: its tree, the text it came from, the tree as it is pinned, and the hash of that."""

    tree: Playbook
    content: bytes
    canonical: bytes
    playbook: str

    @property
    def path(self) -> str:
        return self.tree.path


class Preparing(Struct):
    """The playbooks that were found so far, by file."""

    folder: Path
    seen: Callable[[bytes], None] = lambda _: None  # told the text of every playbook before it is checked
    found: dict[Path, Prepared | None] = {}

    def read(self, name: str, only: str | None = None, quiet: bool = False) -> Prepared:
        """Read a playbook from a file or stdin, and the ones it calls. `only` keeps one step of it."""
        troubles: list[FileTrouble] = []
        content = read_playbook(name, troubles)
        if content is None:
            raise InvalidInput(troubles[0].message)
        self.seen(content)
        file = self.folder / "-" if name == "-" else Path(name).resolve()
        catalog = DiskCatalog(self.folder, file.parent)
        self.found[file] = None  # a playbook that calls itself is not read again
        tree = checked(content, "<stdin>" if name == "-" else name, catalog, quiet)
        tree = self._with_calls(tree if only is None else one_step(tree, only), catalog)
        canonical, playbook = pinned(tree)
        made = self.found[file] = Prepared(tree, content, canonical, playbook)
        return made

    def _with_calls(self, tree: Playbook, catalog: DiskCatalog) -> Playbook:
        """Read what a playbook calls, and name it by its path in the catalog."""
        steps = tuple(
            replace(step, tasks=tuple(self._called(task, catalog) for task in step.tasks)) for step in tree.workflow
        )
        return replace(tree, workflow=steps, workbook=tuple(self._called(task, catalog) for task in tree.workbook))

    def _called(self, task: Task, catalog: DiskCatalog) -> Task:
        path = task.fields["path"].data if task.kind == "playbook" and "path" in task.fields else None
        if not isinstance(path, str):
            return task
        if "{{" in path or "{%" in path:
            for each in catalog:  # any of them may be meant; one with errors is told when it is called
                with suppress(InvalidInput):
                    self._file(catalog.file(each), quiet=True)
            return task
        named = self._file(catalog.file(path))
        return task if named is None else replace(task, fields={**task.fields, "path": Value(named)})

    def _file(self, file: Path | None, quiet: bool = False) -> str | None:
        """Read a called playbook once; gives its path in the catalog."""
        if file is None:
            return None
        if file in self.found:
            made = self.found[file]
            return made.path if made is not None else _own_path(file)
        return self.read(str(file), quiet=quiet).path

    async def register(self, catalog: Catalog, now: int) -> None:
        """Put everything that was read into the catalog."""
        for made in self.found.values():
            if made is not None:
                await catalog.register(made.path, made.content, made.canonical, made.playbook, now)


def checked(content: bytes, name: str, catalog: DiskCatalog, quiet: bool = False) -> Playbook:
    """Give the canonical tree of a text without errors; else they are printed. Raises InvalidPlaybook."""
    from noetl.cli.output.diagnostics import Report, print_text
    from noetl.dsl.normalize import normalize
    from noetl.dsl.parse import parse
    from noetl.dsl.subject import Subject
    from noetl.dsl.validate import examine
    from noetl.wiring import language_kinds

    document = parse(content, name)
    found = examine(Subject(document, language_kinds(), catalog))
    errors = tuple(one for one in found if one.severity == "error")
    if errors:
        report = Report()
        report.add(name, content, errors)
        if not quiet:
            print_text(report, err=True)
        raise InvalidPlaybook(f"{name} has errors, and nothing was run.")
    warnings = sum(one.severity == "warning" for one in found)
    if warnings and not quiet:
        many = "is a warning" if warnings == 1 else f"are {warnings} warnings"
        typer.echo(f"noetl: there {many} about {name}; `noetl validate {name}` tells more.", err=True)
    tree = normalize(document)
    _offered(tree, name)
    return tree


def _offered(tree: Playbook, name: str) -> None:
    """Refuse a playbook that requires what is not here."""
    from noetl.dsl.requires import lacking
    from noetl.wiring import cannot_run

    missing = lacking(tree, cannot_run)
    if missing is not None:
        raise InvalidPlaybook(f"{name}: {missing}.")


def one_step(tree: Playbook, name: str) -> Playbook:
    """Keep one step of a playbook: it runs alone, and nothing follows it."""
    step = tree.step(name)
    if step is None:
        raise InvalidInput(f"the playbook has no step `{name}`; its steps: {', '.join(s.name for s in tree.workflow)}.")
    if not step.tasks:
        raise InvalidInput(f"the step `{name}` only routes; there is nothing to run.")
    spec = {key: value for key, value in tree.executor.spec.items() if key not in ("entry_step", "final_step")}
    alone = replace(step, router=None, compensate=None, admit=None)
    return replace(tree, workflow=(alone,), executor=replace(tree.executor, spec=spec), rollback=None)


def _own_path(file: Path) -> str | None:
    from noetl.cli.playbooks.disk_catalog import catalog_path

    return catalog_path(file)


def payload_of(given: list[str], payload: str | None) -> dict[str, Any]:
    """Make the payload of `--payload JSON|@file` and of each `--set key=value`, which win."""
    data = _payload(payload) if payload is not None else {}
    for text in given:
        key, found, value = text.partition("=")
        if not found or not key.strip():
            raise InvalidInput(f"`--set {text}` is not of the form key=value.")
        _put(data, key.strip().split("."), value_of(value))
    return data


def value_of(text: str) -> Any:
    """Read a value from the command line: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def data_of(text: str) -> Any:
    """Read what a signal brings: JSON, or a text that does not begin like JSON. Raises InvalidInput."""
    try:
        return json.loads(text)
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise InvalidInput(
                f"the data begins like JSON and is none: {error}. Quote it for the shell; write such a text as JSON too: '\"…\"'."
            ) from None
        return text


def _payload(given: str) -> dict[str, Any]:
    text = given
    if given.startswith("@"):
        troubles: list[FileTrouble] = []
        content = read_playbook(given[1:], troubles)
        if content is None:
            raise InvalidInput(f"the payload {troubles[0].message}")
        text = content.decode("utf-8-sig", "replace")
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"the payload is not JSON: {error}. Quote it for the shell, or write it to a file: --payload @file."
        ) from None
    if not isinstance(data, dict):
        raise InvalidInput("the payload must be a JSON object: its keys become those of `workload`.")
    return data


def _put(data: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        below = data.get(key)
        data[key] = below = below if isinstance(below, dict) else {}
        data = below
    data[keys[-1]] = value
