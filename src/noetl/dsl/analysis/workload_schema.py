"""The JSON Schema of a workload: its parts, and checks of values with a budget.

Patterns run on RE2, in linear time. No reference leaves the schema, and nothing is loaded. A check stops when its budget is
spent: references and alternatives can make the work grow exponentially. Tested in
tests/unit/dsl/analysis/test_workload_schema.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

import msgspec

from noetl.dsl.analysis.value_formats import FORMATS
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node

# Keywords whose meaning depends on other parts of the schema, in time that is not bounded.
UNSUPPORTED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_DATA: Final = frozenset({"default", "enum", "const", "examples"})  # they hold values, not schemas
_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LONGEST_PATTERN: Final = 1_000
# Keywords that are applied to a value, where texts and lists count by their length: a share for each part of the value.
_LEAST_WORK: Final = 20_000
_WORK_OF_A_PART: Final = 20
_MOST_WORK: Final = 150_000
MOST_PARTS: Final = 2_000  # maps and lists of a schema
_LONGEST_MESSAGE: Final = 500
_SLOT: Final = 64  # characters that cost as much as a keyword


class SchemaProblem(Exception):  # noqa: N818 - it is an answer, not a bug
    """A schema or a value that cannot be checked."""


def keywords(node: Node | None) -> Iterator[Entry]:
    """Yield the keywords of a schema and of the schemas in it."""
    if isinstance(node, MapNode):
        for entry in node:
            yield entry
            if entry.key.text in _BY_NAME and isinstance(entry.value, MapNode):
                for named in entry.value:
                    yield from keywords(named.value)
            elif entry.key.text not in _DATA:
                yield from keywords(entry.value)
    elif isinstance(node, ListNode):
        for item in node:
            yield from keywords(item)


@lru_cache(maxsize=1_024)
def pattern_problem(pattern: str) -> str | None:
    """Return why a pattern cannot be used, or None."""
    import re2  # slow to import, and most playbooks have no pattern

    if len(pattern) > _LONGEST_PATTERN:
        return f"it is longer than {_LONGEST_PATTERN:,} characters"
    try:
        _compiled(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return None


def misfits(schema: dict[str, Any] | bool, value: Any) -> list[tuple[str, str]]:
    """Return path and message of each misfit of a value. Raises SchemaProblem."""
    work = min(_LEAST_WORK + _WORK_OF_A_PART * count_parts(value, _MOST_WORK // _WORK_OF_A_PART), _MOST_WORK)
    try:
        validator = _validator(msgspec.json.encode(schema))
        errors = list(validator.evolve(format_checker=_checker(FORMATS, work)).iter_errors(value))
    except SchemaProblem:
        raise
    except Exception as error:  # noqa: BLE001 - the library may fail in any way on a hostile schema
        why = str(error).split("\n", 1)[0][:_LONGEST_MESSAGE]
        raise SchemaProblem(f"cannot be checked ({type(error).__name__}: {why})") from None
    return sorted((str(error.json_path), _shortened(str(error.message))) for error in errors)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"


class _Budget:
    """The work that one check may still do."""

    def __init__(self, work: int) -> None:
        self._left = work

    def spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise SchemaProblem("takes too long to check")


@lru_cache(maxsize=64)
def _validator(text: bytes) -> Any:
    """Return the cached validator of a schema. Raises SchemaProblem."""
    from jsonschema.exceptions import best_match
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # the schemas of JSON Schema itself; it loads no others

    bounded, schema = _bounded(), msgspec.json.decode(text)
    if count_parts(schema, MOST_PARTS) > MOST_PARTS:
        raise SchemaProblem(f"has more than {MOST_PARTS:,} maps and lists")
    checker = _checker({"regex": lambda pattern: pattern_problem(pattern) is None}, 1_000 * MOST_PARTS)
    meta = bounded(bounded.META_SCHEMA, registry=REGISTRY, format_checker=checker)
    error = best_match(meta.iter_errors(schema))
    if error is not None:
        raise SchemaProblem(f"is no JSON Schema: {error.message}")
    return bounded(schema, registry=REGISTRY)


def _checker(formats: Mapping[str, Callable[[str], bool]], work: int) -> Any:
    """Return a checker of formats; it carries the budget to all parts of a check."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    checker.budget = _Budget(work)  # type: ignore[attr-defined]
    for name, is_valid in formats.items():
        checker.checks(name)(lambda value, is_valid=is_valid: not isinstance(value, str) or is_valid(value))
    return checker


def count_parts(value: Any, most: int) -> int:
    """Count the maps and lists of a value, up to one more than `most`."""
    count, pending = 0, [value]
    while pending and count <= most:
        part = pending.pop()
        if isinstance(part, dict | list):
            count += 1
            pending.extend(part.values() if isinstance(part, dict) else part)
    return count


@cache
def _bounded() -> Any:
    """Return the class of validators whose keywords draw from a budget."""
    from jsonschema import Draft202012Validator, validators  # slow to import, and most playbooks have no schema

    own: dict[str, Any] = {
        **Draft202012Validator.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        **dict.fromkeys(UNSUPPORTED, _unsupported),
    }
    counted = {name: _counted(keyword) for name, keyword in own.items()}
    return validators.extend(Draft202012Validator, counted)  # type: ignore[no-untyped-call]


def _counted(keyword: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        budget: _Budget = validator.format_checker.budget
        budget.spend(1 + _length(value) + _length(instance))
        for error in keyword(validator, value, instance, schema) or ():
            budget.spend(len(error.message) // _SLOT)
            yield error

    return counted


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value) // _SLOT
    if isinstance(value, int) and not isinstance(value, bool):
        return value.bit_length() // _SLOT
    return len(value) // 8 if isinstance(value, list | dict) else 0


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _matches(validator: Any, pattern: str, text: str) -> bool:
    validator.format_checker.budget.spend(1 + len(text) // _SLOT)
    problem = pattern_problem(pattern)
    if problem is not None:
        raise SchemaProblem(f"has a pattern that cannot be used: {problem}")
    return _compiled(pattern).search(text) is not None


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _matches(validator, pattern, instance):
        yield _error(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any) -> Iterator[Any]:
    for pattern, schema in patterns.items() if isinstance(instance, dict) else ():
        for name, value in instance.items():
            if _matches(validator, pattern, name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [
        name for name in instance if name not in known and not any(_matches(validator, one, name) for one in patterns)
    ]
    if isinstance(allowed, dict):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        shown, verb = ", ".join(map(repr, sorted(extras))), "was" if len(extras) == 1 else "were"
        yield _error(f"Additional properties are not allowed ({shown} {verb} unexpected)")


def _unique_items(validator: Any, is_unique: Any, instance: Any, _: Any) -> Iterator[Any]:
    if is_unique and isinstance(instance, list):
        texts = list(_texts(instance))
        validator.format_checker.budget.spend(sum(map(len, texts)) // _SLOT)
        if len(set(texts)) < len(texts):
            yield _error(f"{instance!r} has non-unique elements")


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield a text of each value; equal values have equal texts, and `1` equals `1.0`."""
    for value in values:
        if isinstance(value, dict):
            yield repr(sorted(zip(map(str, value), _texts(value.values()), strict=True)))
        elif isinstance(value, list | tuple):
            yield repr(list(_texts(value)))
        elif isinstance(value, float) and value.is_integer():
            yield repr(int(value))
        else:
            yield repr(value)


def _unsupported(*_: Any) -> Iterator[Any]:
    raise SchemaProblem(f"uses {' or '.join(sorted(UNSUPPORTED))}, which NoETL does not check")
