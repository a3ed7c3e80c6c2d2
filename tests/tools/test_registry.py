"""Contract of every tool kind: documented, consistent, loaded on first use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import msgspec
import pytest

import noetl.tools
from noetl.dsl.grammar.kinds import Kind, Need
from noetl.dsl.grammar.task import COMMON
from noetl.dsl.grammar.types import Choice, Field, Level, LevelOf, ListOf, MapOf, OneOf, Type
from noetl.dsl.reading.nodes import plain
from noetl.dsl.reading.parse import parse
from noetl.tools import MODULES, kinds
from noetl.tools.contract import decode

NAMES = [
    *("noop", "http", "python", "postgres", "duckdb", "ducklake", "shell", "script", "playbook", "workbook", "secrets"),
    *("transfer", "artifact", "resolve", "outbox", "nats", "snowflake", "container", "mcp", "sleep", "wait"),
]
SUPPORT = {"__init__", "contract", "fields", "registry"}
SUSPENDING = {"sleep", "wait", "playbook"}
EXTRAS = {"", *metadata("noetl").get_all("Provides-Extra", [])}
COMMON_NAMES = {name for field in COMMON for name in (field.name, *field.aliases)}

every_kind = pytest.mark.parametrize("name", NAMES)


def inner_levels(type_: Type) -> Iterator[Level]:
    match type_:
        case LevelOf(own=Level() as level):
            yield from levels(level)
        case ListOf(inner) | MapOf(inner):
            yield from inner_levels(inner)
        case OneOf(options):
            for option in options:
                yield from inner_levels(option)


def levels(level: Level) -> Iterator[Level]:
    """The level and those of the maps inside it."""
    yield level
    for field in level.fields:
        yield from inner_levels(field.type)


def fields(kind: Kind) -> list[tuple[str, Field]]:
    return [(f"{level.name}.{field.name}", field) for level in levels(kind.input) for field in level.fields]


def tasks(kind: Kind) -> list[dict[str, Any]]:
    """The tasks of a kind's examples, with their label under `name`."""
    found = []
    for example in kind.examples:
        document = parse(f"tool:\n{example.yaml}")
        assert document.problems == ()
        for item in plain(document.root)["tool"]:
            (label, body), *more = item.items()
            found.append({"name": label, **body} if not more else item)
    return found


def inputs(task: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in task.items() if key not in COMMON_NAMES}


def present(kind: Kind, task: dict[str, Any], name: str) -> bool:
    field = kind.input.field(name)
    assert field is not None
    return any(key in task for key in (field.name, *field.aliases))


def is_sentence(text: str) -> bool:
    return text[:1].isupper() and text.endswith(".") and "\n" not in text


def test_every_kind_of_the_language_is_in_the_table() -> None:
    assert list(MODULES) == NAMES
    assert [kinds()[name].name for name in NAMES] == NAMES
    assert len(kinds()) == len(list(kinds())) >= len(NAMES)


def test_every_module_of_the_folder_is_a_kind_or_supports_kinds() -> None:
    folder = Path(noetl.tools.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {*NAMES, *SUPPORT}


@every_kind
def test_a_kind_says_what_it_is(name: str) -> None:
    kind, module = kinds()[name], import_module(MODULES[name])
    assert is_sentence((module.__doc__ or "").partition("\n")[0])
    assert is_sentence(kind.summary)
    assert kind.description.endswith(".")
    assert kind.description == kind.description.strip()
    assert issubclass(module.Input, msgspec.Struct)
    assert module.KIND is kind


@every_kind
def test_every_field_is_described(name: str) -> None:
    for path, field in fields(kinds()[name]):
        assert is_sentence(field.summary), path
    for level in levels(kinds()[name].input):
        assert is_sentence(level.summary), level.name
        assert len(set(level.names())) == len(level.names()), level.name


@every_kind
def test_a_kind_leaves_the_fields_of_every_task_to_the_language(name: str) -> None:
    assert COMMON_NAMES.isdisjoint(kinds()[name].input.names())


@every_kind
def test_groups_and_needs_name_fields_of_the_kind(name: str) -> None:
    kind = kinds()[name]
    own = {field.name for field in kind.input.fields}
    for group in (*kind.one_of, *kind.at_most_one):
        assert len(group) > 1
        assert set(group) <= own
        assert not any(field.required for field in kind.input.fields if field.name in group)
    for need in kind.needs:
        assert {need.field, *need.fields} <= own
        if need.value is not None:
            chosen = kind.input.field(need.field)
            assert chosen is not None
            assert isinstance(chosen.type, Choice)
            assert need.value in chosen.type.words


@every_kind
def test_what_comes_out_is_described(name: str) -> None:
    kind = kinds()[name]
    assert kind.result is None or kind.result
    for meaning in (kind.result or {}).values():
        assert meaning.endswith(".")
    if kind.helper:
        assert kind.helper[1]
        assert all(meaning.endswith(".") for meaning in kind.helper[1].values())
    assert kind.suspends == (name in SUSPENDING)
    assert kind.extra in EXTRAS


@pytest.mark.parametrize(
    ("name", "helper", "expected"),
    [
        ("http", "http", {"status", "headers"}),
        ("postgres", "pg", {"code", "sqlstate"}),
        ("python", "py", {"exception_type", "traceback"}),
    ],
)
def test_the_parts_of_the_outcome_that_policies_read(name: str, helper: str, expected: set[str]) -> None:
    found = kinds()[name].helper
    assert found is not None
    assert (found[0], set(found[1])) == (helper, expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("http", {"status", "status_code", "headers", "url", "elapsed", "data", "body"}),
        ("postgres", {"rows", "row_count", "columns", "status", "command_<i>"}),
        ("duckdb", {"rows", "row_count", "columns", "status", "command_<i>"}),
        ("shell", {"returncode", "stdout", "stderr"}),
    ],
)
def test_the_results_that_playbooks_rely_on(name: str, expected: set[str]) -> None:
    assert set(kinds()[name].result or {}) == expected


@every_kind
def test_examples_come_in_both_spellings(name: str) -> None:
    examples = kinds()[name].examples
    assert len({example.title for example in examples}) == len(examples) >= 2
    by_name = [example.yaml.startswith("- name: ") for example in examples]
    assert any(by_name)
    assert not all(by_name)


@every_kind
def test_examples_use_known_fields_and_keep_the_groups(name: str) -> None:
    kind = kinds()[name]
    for task in tasks(kind):
        assert task["kind"] == name
        assert set(inputs(task)) <= set(kind.input.names())
        for group in kind.one_of:
            assert sum(present(kind, task, one) for one in group) == 1, task
        for group in kind.at_most_one:
            assert sum(present(kind, task, one) for one in group) <= 1, task
        for need in kind.needs:
            if applies(kind, task, need):
                assert all(present(kind, task, one) for one in need.fields), (task, need)


def applies(kind: Kind, task: dict[str, Any], need: Need) -> bool:
    field = kind.input.field(need.field)
    assert field is not None
    value = task.get(need.field, field.default or None)
    return value is not None and need.value in (None, value)


def read_back(kind: Kind, data: dict[str, Any]) -> dict[str, Any]:
    """Return the decoded inputs of the written fields, with defaults."""
    read = decode(import_module(MODULES[kind.name]).Input, kind.input, data)
    names = {field.name: key for key in data if (field := kind.input.field(key))}
    return {key: msgspec.to_builtins(getattr(read, name)) for name, key in names.items()}


@every_kind
def test_the_model_reads_the_examples(name: str) -> None:
    kind = kinds()[name]
    for task in tasks(kind):
        written = {key: value for key, value in inputs(task).items() if is_needed(kind, key) or not has_template(value)}
        assert read_back(kind, written) == written


def is_needed(kind: Kind, key: str) -> bool:
    field = kind.input.field(key)
    return field is not None and field.required


def has_template(value: Any) -> bool:
    return b"{{" in msgspec.json.encode(value)


@every_kind
def test_the_model_reads_the_example_of_each_field(name: str) -> None:
    kind = kinds()[name]
    needed = {key: value for key, value in inputs(tasks(kind)[0]).items() if is_needed(kind, key)}
    for field in kind.input.fields:
        value = plain(parse(f"value: {field.example or 'null'}").root)["value"]
        if value is not None and not has_template(value):
            assert read_back(kind, {**needed, field.name: value})[field.name] == value


def test_only_the_kinds_that_are_looked_at_are_imported() -> None:
    code = (
        "import sys; from noetl.wiring.embedded import language_kinds; kinds = language_kinds(); 'http' in kinds; kinds['sleep'];"
        "print(sorted(name for name in sys.modules if name.startswith('noetl.tools.')), 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['noetl.tools.contract', 'noetl.tools.registry', 'noetl.tools.sleep'] False"


def test_an_unknown_name_is_no_kind() -> None:
    assert "htpp" not in kinds()
    with pytest.raises(KeyError):
        kinds()["htpp"]
