"""The configuration file, and the server's layer of settings: what every execution has where its playbook says nothing.

Both say what environment variables say: `retries: {plugin: {base_ms: 50}}` is `NOETL_RETRIES_PLUGIN_BASE_MS=50`, and a
variable that is set wins. Which settings a server may give, and what they take, is read from the language's own
description of `executor.spec`. Tested in tests/unit/test_configuration.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.grammar import LEVELS
from noetl.dsl.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.parse import parse
from noetl.dsl.types import Choice, Field, Flag, LevelOf, ListOf, Number, OneOf, Type
from noetl.engine.writes import put
from noetl.model.errors import InvalidInput
from noetl.settings import CONFIG, CREDENTIAL, VARIABLES, config_file

_PREFIX: Final = "NOETL_"
_MAPS: Final = ("retries", "timeouts", "limits", "result")  # sections of their own; the rest is grouped
_OF_PLAYBOOKS: Final = frozenset(
    {"entry_step", "final_step", "workload_schema", "pool", "priority", "requires"}
    | {"select", "strategy", "merge_path", "bucket", "prefix"}
)  # say nothing without a playbook
_HARMLESS: Final = ("empty", "legacy-boolean")  # a value is checked by its setting


class Knob(Struct, frozen=True):
    """One setting that a server gives to every execution."""

    variable: str
    path: tuple[str, ...]  # in the settings of a playbook
    field: Field
    about: str  # what it is for

    @property
    def key(self) -> str:
        """How it is written in the file."""
        return ".".join(_grouped(self.path))


@cache
def knobs() -> Mapping[str, Knob]:
    """Give every setting of the server's layer by its environment variable."""
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
            told = f"{about} {field.summary}".strip()
            yield Knob(_PREFIX + "_".join(_grouped(here)).upper(), here, field, told)


def _level(found: Type) -> str | None:
    options = found.options if isinstance(found, OneOf) else (found,)
    return next((option.level for option in options if isinstance(option, LevelOf)), None)


def _grouped(path: tuple[str, ...]) -> tuple[str, ...]:
    """Give where a setting stands in the file."""
    if path[0] in _MAPS:
        return path
    if path[0] == "policy":
        return ("policies", *path[1:])
    return ("policies" if path[0].startswith(("on_", "no_")) else "orchestrator", *path)


def layer(environment: Mapping[str, str]) -> dict[str, Any]:
    """Give the server's layer: what the variables say, as `executor.spec` would. Raises InvalidInput."""
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
        case Number(integer, least):
            wanted = f"a {'whole ' if integer else ''}number from {least or 0:g} on"
            try:
                number = int(text) if integer else float(text)
                if (least or 0) <= number < 2**53:
                    return number
            except ValueError:
                pass
        case Choice(words, prefixes):
            if text in words or any(text.startswith(prefix) and text != prefix for prefix in prefixes):
                return text
            wanted = "one of " + ", ".join((*words, *(f"{prefix}<label>" for prefix in prefixes)))
        case _:
            return text
    raise InvalidInput(f"the setting {knob.variable} must be {wanted}, and it is {text!r}.")


def configured(environment: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """Give the environment, with what the configuration file says where a variable is not set. Raises InvalidInput."""
    path = config_file(environment, folder)
    try:
        text = path.read_bytes()
    except OSError as error:
        if not environment.get(CONFIG, "").strip() and isinstance(error, FileNotFoundError | NotADirectoryError):
            return environment
        raise InvalidInput(f"the configuration file {path} cannot be read: {error.strerror}.") from None
    return read(text, str(path)) | {name: value for name, value in environment.items() if value.strip()}


def read(text: bytes, file: str) -> dict[str, str]:
    """Give the variables that a configuration file sets. Raises InvalidInput, with the place."""
    document = parse(text, file)
    for problem in document.problems:
        if problem.kind not in _HARMLESS:
            where = document.source.position(problem.start)
            raise InvalidInput(f"{file}:{where.line}:{where.column}: {problem.message}")
    found: dict[str, str] = {}
    known = _names()
    for path, node in _leaves(document.root, ()):
        variable = _PREFIX + "_".join(path).upper()
        where = document.source.position(node.start)
        if variable not in known:
            name = ".".join(path)
            hint = did_you_mean(name, known.values())
            raise InvalidInput(f"{file}:{where.line}:{where.column}: `{name}` is no setting.{hint}")
        found[variable] = _text(node)
    return found


def _names() -> dict[str, str]:
    """Give what a file may set: the variable, and how it is written there."""
    plain = {
        name: name.removeprefix(_PREFIX).lower() for name in VARIABLES if not name.startswith((CREDENTIAL, CONFIG))
    }
    return plain | {knob.variable: knob.key for knob in knobs().values()}


def _leaves(node: Node | None, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    if isinstance(node, MapNode):
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
