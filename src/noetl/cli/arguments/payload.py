"""Values from the command line: `--set`, `--payload`, batch files and more.

A batch file (`noetl exec --each`) has one JSON object per line, or one JSON array of objects; errors name the file and the line.
Tested in tests/acceptance/executions/test_run.py and test_exec_each.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from msgspec import Struct

from noetl.cli.arguments.files import load_file
from noetl.cli.arguments.options import warn_of_secret
from noetl.cli.runtime.terminal import echo
from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.secret_names import is_secret_name
from noetl.model.errors import InvalidInput

# Types of a default, and what a value must be then.
_TYPES: tuple[tuple[Any, str], ...] = (
    (bool, "true or false"),
    ((int, float), "a number"),
    (list, "a JSON list"),
    (dict, "a JSON object"),
)
_NEXT_ITEM = re.compile(r"[^\s,]")


class BatchItem(Struct, frozen=True):
    """Payload of one execution, and where it was read."""

    place: str  # FILE:LINE
    payload: dict[str, Any]


def read_payload(
    assignments: Iterable[str], payload: str | None, declared: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Merge `--payload` with each `--set`, which win. Raises InvalidInput.

    With the `declared` workload, a value takes the type of its default, and a key that it lacks gets a warning.
    """
    data = _parse_payload(payload) if payload is not None else {}
    if payload is not None and not payload.startswith("@"):
        _warn_of_secrets(data, "--payload")
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidInput(
                f"`--set {text}` is not of the form key=value. Write `--set {key.strip() or 'KEY'}=VALUE`."
            )
        keys = key.strip().split(".")
        _warn_of_secrets({keys[-1]: value}, "--set")
        default = _default(declared, keys) if declared else None
        _put(data, keys, _typed(text, value, default))
    return data


def _warn_of_secrets(data: Mapping[str, Any], option: str) -> None:
    for name, value in data.items():
        if isinstance(value, Mapping):
            _warn_of_secrets(value, option)
        elif is_secret_name(name):
            instead = "Store it as a credential that the playbook reads by `keychain`, or use --payload @FILE."
            warn_of_secret(f"`{name}` in {option}", instead)


def _default(declared: Any, keys: list[str]) -> Any:
    """Return the declared value of a key, or None; warn of a key that is not declared."""
    for place, key in enumerate(keys):
        if not isinstance(declared, Mapping) or not declared:
            return None
        if key not in declared:
            name = ".".join(("workload", *keys[:place]))
            echo(f"noetl: warning: `{name}` has no key `{key}`.{did_you_mean(key, declared)}", err=True)
            return None
        declared = declared[key]
    return declared


def _typed(text: str, value: str, default: Any) -> Any:
    parsed = parse_value(value)
    if isinstance(default, str):
        is_template = "{{" in default or "{%" in default
        return parsed if isinstance(parsed, str) or is_template else value
    for kinds, name in _TYPES:
        if isinstance(default, kinds):
            if parsed is None or (isinstance(parsed, kinds) and (kinds is bool or not isinstance(parsed, bool))):
                return parsed
            like = json.dumps(default)
            raise InvalidInput(
                f"`--set {text}` must be {name}, like the default {like[:60]}{'…' if len(like) > 60 else ''}."
            )
    return parsed


def parse_value(text: str) -> Any:
    """Parse a value as JSON, else return the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_signal_data(text: str) -> Any:
    """Parse JSON, or text that does not look like JSON. Raises InvalidInput."""
    try:
        return json.loads(text)
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise InvalidInput(
                f"The data looks like JSON but cannot be parsed: {error}. "
                "Quote it for the shell; to send such a text as text, write it as a JSON string: '\"…\"'."
            ) from None
        return text


def _parse_payload(given: str) -> dict[str, Any]:
    text = given
    if given.startswith("@"):
        try:
            text = load_file(given[1:]).decode("utf-8-sig", "replace")
        except InvalidInput as error:
            raise InvalidInput(f"Cannot read the payload: {error}") from None
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"The payload is not JSON: {error}. Quote it for the shell, or read it from a file: --payload @FILE."
        ) from None
    if not isinstance(data, dict):
        raise InvalidInput("The payload must be a JSON object: its keys become the keys of `workload`.")
    return data


def _put(data: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        below = data.get(key)
        data[key] = below = below if isinstance(below, dict) else {}
        data = below
    data[keys[-1]] = value


def read_batch(name: str, defaults: Mapping[str, Any]) -> list[BatchItem]:
    """Read the payloads of a batch file, each over the defaults. Raises InvalidInput."""
    content = load_file(name)
    shown = "<stdin>" if name == "-" else name
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{shown}:{line}: not UTF-8.") from None
    values = _array_items(text, shown) if text.lstrip().startswith("[") else _line_items(text, shown)
    items = [_batch_item(f"{shown}:{line}", value, defaults) for line, value in values]
    if not items:
        raise InvalidInput(f"{shown} is empty. Write one JSON object per line, or an array of objects.")
    return items


def _line_items(text: str, name: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _parse_json(line, name, number)


def _array_items(text: str, name: str) -> Iterator[tuple[int, Any]]:
    _parse_json(text, name, 1)  # well-formed from here on
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    while (found := _NEXT_ITEM.search(text, at)) is not None and found[0] != "]":
        at = found.start()
        line = text.count("\n", 0, at) + 1
        value, at = decoder.raw_decode(text, at)
        yield line, value


def _parse_json(text: str, name: str, first_line: int) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise InvalidInput(f"{name}:{line}: not JSON: {error.msg}, column {error.colno}.") from None
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise InvalidInput(f"{name}:{first_line}: not JSON: {reason}.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _batch_item(place: str, value: Any, defaults: Mapping[str, Any]) -> BatchItem:
    if not isinstance(value, dict):
        raise InvalidInput(f"{place}: not a JSON object. The keys of the object become the keys of `workload`.")
    return BatchItem(place, {**defaults, **value})
