"""Configuration file, and the server's defaults of every execution.

`retries: {plugin: {base_ms: 50}}` in the file is `NOETL_RETRIES_PLUGIN_BASE_MS=50` in the environment, which overrides it. The
settings and their types come from the grammar of `executor.spec`. Tested in tests/unit/test_configuration.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.types import Choice, Field, Flag, LevelOf, ListOf, Number, OneOf, Type
from noetl.dsl.grammar.wording import in_full
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.parse import parse
from noetl.engine.state.writes import put
from noetl.model.errors import InvalidSetting
from noetl.settings import (
    CONFIG,
    CREDENTIAL,
    GROUPS,
    PREFIX,
    VARIABLES,
    config_file,
    logging_settings,
    server_settings,
    settings,
    worker_settings,
)

_MAPS: Final = ("retries", "timeouts", "limits", "result")  # own sections of the file; other settings are grouped
_OF_PLAYBOOKS: Final = frozenset(
    {"entry_step", "final_step", "workload_schema", "pool", "priority", "requires"}
    | {"select", "strategy", "merge_path", "bucket", "prefix"}
)  # meaningless without a playbook
_HARMLESS: Final = ("empty", "legacy-boolean")  # the setting checks the value

Check = Callable[[Mapping[str, str]], object]  # raises InvalidSetting


class Knob(Struct, frozen=True):
    """Setting that a server applies to every execution."""

    variable: str
    path: tuple[str, ...]  # in a playbook's `executor.spec`
    field: Field
    about: str  # description

    @property
    def key(self) -> str:
        """Name in the configuration file."""
        return ".".join(_grouped(self.path))


@cache
def knobs() -> Mapping[str, Knob]:
    """Return every setting of the server's layer by its environment variable."""
    return {knob.variable: knob for knob in _knobs("executor_spec", ())}


def _knobs(level: str, path: tuple[str, ...], about: str = "") -> Iterator[Knob]:
    for field in LEVELS[level].fields:
        inner = _level(field.type)
        here = (*path, field.name)
        if field.name in _OF_PLAYBOOKS or isinstance(field.type, ListOf):
            continue
        if inner is not None:
            yield from _knobs(inner, here, field.summary if path else "")
        else:
            summary = f"{about} {field.summary}".strip()
            yield Knob(PREFIX + "_".join(_grouped(here)).upper(), here, field, summary)


def _level(found: Type) -> str | None:
    options = found.options if isinstance(found, OneOf) else (found,)
    return next((option.level for option in options if isinstance(option, LevelOf)), None)


def _grouped(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of a setting in the configuration file."""
    if path[0] in _MAPS:
        return path
    if path[0] == "policy":
        return ("policies", *path[1:])
    return ("policies" if path[0].startswith(("on_", "no_")) else "orchestrator", *path)


def layer(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the server's layer in the form of `executor.spec`. Raises InvalidInput."""
    found: dict[str, Any] = {}
    for knob in knobs().values():
        text = environment.get(knob.variable, "").strip()
        if text:
            put(found, ".".join(knob.path), _value(knob, text))
    return found


def _value(knob: Knob, text: str) -> Any:
    match knob.field.type:
        case Flag():
            if text in ("true", "false"):
                return text == "true"
            wanted = "true or false"
        case Number(integer, least, most):
            wanted = f"{'an integer' if integer else 'a number'} of at least {in_full(least or 0)}"
            wanted += "" if most is None else f" and at most {in_full(most)}"
            try:
                number = int(text) if integer else float(text)
                if (least or 0) <= number < 2**53 and (most is None or number <= most):
                    return number
            except ValueError:
                pass
        case Choice(words, prefixes):
            if text in words or any(text.startswith(prefix) and text != prefix for prefix in prefixes):
                return text
            wanted = "one of " + ", ".join((*words, *(f"{prefix}<label>" for prefix in prefixes)))
        case _:
            return text
    raise InvalidSetting(f"The setting {knob.variable} must be {wanted}, not {text!r}.", variable=knob.variable)


class Entry(Struct, frozen=True):
    """A setting as the configuration file has it."""

    text: str
    place: str  # file:line:column


def configured(environment: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """Return the environment over the configuration file. Raises InvalidInput."""
    return _over(file_entries(environment, folder), environment)


def _over(entries: Mapping[str, Entry], environment: Mapping[str, str]) -> dict[str, str]:
    found = {name: entry.text for name, entry in entries.items()}
    return found | {name: value for name, value in environment.items() if value.strip()}


def file_entries(environment: Mapping[str, str], folder: Path) -> Mapping[str, Entry]:
    """Return the settings of the configuration file, if any. Raises InvalidSetting."""
    path = config_file(environment, folder)
    try:
        text = path.read_bytes()
    except OSError as error:
        if not environment.get(CONFIG, "").strip() and isinstance(error, FileNotFoundError | NotADirectoryError):
            return {}
        raise InvalidSetting(f"Cannot read the configuration file {path}: {error.strerror}.") from None
    return read(text, str(path))


def read(text: bytes, file: str) -> dict[str, Entry]:
    """Return the settings of a file by variable. Raises InvalidSetting."""
    found, problems = _read(text, file)
    if problems:
        raise InvalidSetting("\n".join(problems))
    return found


def _read(text: bytes, file: str) -> tuple[dict[str, Entry], list[str]]:
    """Return the settings of a file, and a line for each place that is wrong."""
    document = parse(text, file)

    def place(offset: int) -> str:
        where = document.source.position(offset)
        return f"{file}:{where.line}:{where.column}"

    problems = [
        f"{place(problem.start)}: {problem.message}" for problem in document.problems if problem.kind not in _HARMLESS
    ]
    if problems:
        return {}, problems
    found: dict[str, Entry] = {}
    known = keys()
    for path, node in _leaves(document.root, ()):
        variable = PREFIX + "_".join(path).upper()
        if variable in known:
            found[variable] = Entry(_text(node), place(node.start))
        elif not _is_empty_section(node, path, known.values()):
            name = ".".join(path)
            problems.append(f"{place(node.start)}: unknown setting `{name}`.{did_you_mean(name, known.values())}")
    return found, problems


def _is_empty_section(node: Node, path: tuple[str, ...], known: Iterable[str]) -> bool:
    """Return whether a node is a section without settings: `retries: {}`."""
    is_empty = isinstance(node, MapNode) or (isinstance(node, Scalar) and node.value is None)
    return is_empty and any(name.startswith(".".join(path) + ".") for name in known)


def keys() -> dict[str, str]:
    """Return the variables that a file can set, with their names in the file."""
    plain = {name: _key(name) for name in VARIABLES if not name.startswith((CREDENTIAL, CONFIG))}
    return plain | {knob.variable: knob.key for knob in knobs().values()}


def _key(variable: str) -> str:
    """Return the name of a setting in the file: `metrics.port`."""
    section, _, name = variable.removeprefix(PREFIX).lower().partition("_")
    return f"{section}.{name}" if name and section in GROUPS else variable.removeprefix(PREFIX).lower()


def _leaves(node: Node | None, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    if isinstance(node, MapNode) and node.entries:
        for entry in node:
            yield from _leaves(entry.value, (*path, entry.key.text))
    elif node is not None and path:
        yield path, node


def _text(node: Node) -> str:
    if isinstance(node, ListNode):
        return ",".join(_text(item) for item in node)
    if not isinstance(node, Scalar) or node.value is None:
        return ""
    return str(node.value).lower() if isinstance(node.value, bool) else node.text


def problems(environment: Mapping[str, str], folder: Path, more: Iterable[Check] = ()) -> list[str]:
    """Return what is wrong with the settings of a process, one line each.

    `environment` is that of the process, without the file. Variables that are no setting are not among them: another program
    may have a variable of this name. `more` are checks that need other parts of NoETL.
    """
    found: list[str] = []
    entries: Mapping[str, Entry] = {}
    path = config_file(environment, folder)
    try:
        entries, found = _read(path.read_bytes(), str(path))
    except OSError as error:
        if environment.get(CONFIG, "").strip() or not isinstance(error, FileNotFoundError | NotADirectoryError):
            found.append(f"Cannot read the configuration file {path}: {error.strerror}.")
    variables = _over(entries, environment)
    checks: tuple[Check, ...] = (
        lambda given: settings(given, folder),
        server_settings,
        lambda given: worker_settings(given, ""),
        logging_settings,
        layer,
        *more,
    )
    for check in checks:
        for wrong in _wrong_values(check, variables):
            entry = entries.get(wrong.variable)
            from_file = entry is not None and not environment.get(wrong.variable, "").strip()
            found.append(f"{entry.place}: {wrong}" if entry is not None and from_file else str(wrong))
    return list(dict.fromkeys(found))


def _wrong_values(check: Check, given: Mapping[str, str]) -> Iterator[InvalidSetting]:
    """Yield what a check refuses, each time without the settings refused before."""
    left = dict(given)
    while True:
        try:
            check(left)
        except InvalidSetting as wrong:
            yield wrong
            if left.pop(wrong.variable, None) is None:
                return
        else:
            return
