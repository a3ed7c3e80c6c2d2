"""The configuration file, and the settings that a server gives to every execution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetl.configuration import configured, keys, knobs, layer, read
from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.types import LevelOf
from noetl.model.errors import InvalidInput
from noetl.settings import CAPACITY, CONFIG, EGRESS_ALLOW, HOME, SECTIONS, VARIABLES

HERE = Path("/nowhere")
ROOT = Path(__file__).parents[2]


def test_every_section_of_settings_for_executions_can_be_given() -> None:
    for level in ("retries", "timeouts", "limits"):
        for field in LEVELS[level].fields:
            if not isinstance(field.type, LevelOf):
                assert f"NOETL_{level}_{field.name}".upper() in knobs()
    for name in ("on_step_fail", "on_sink_fail", "on_when_error", "on_parked", "no_next_is_error", "failure_mode"):
        assert f"NOETL_POLICIES_{name}".upper() in knobs()
    assert {"NOETL_RETRIES_SINK_MAX_MS", "NOETL_RETRIES_DISPATCH_MAX_ATTEMPTS"} <= knobs().keys()
    assert all(name.startswith(SECTIONS) for name in knobs())
    assert not knobs().keys() & VARIABLES.keys()
    assert not any(name.endswith("_STEP") for name in knobs())  # `entry_step` and `final_step` belong to a playbook


@pytest.mark.parametrize(
    ("variable", "text", "found"),
    [
        ("NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS", "2", {"retries": {"plugin": {"max_attempts": 2}}}),
        ("NOETL_TIMEOUTS_TOOL_DEFAULT_MS", "1.5", {"timeouts": {"tool_default_ms": 1.5}}),
        ("NOETL_POLICIES_ON_STEP_FAIL", "route_edge:oops", {"on_step_fail": "route_edge:oops"}),
        ("NOETL_POLICIES_ON_WHEN_ERROR", "fail_step", {"on_when_error": "fail_step"}),
        ("NOETL_POLICIES_NO_NEXT_IS_ERROR", "true", {"no_next_is_error": True}),
        ("NOETL_POLICIES_FAILURE_MODE", "best_effort", {"policy": {"failure": {"mode": "best_effort"}}}),
        ("NOETL_ORCHESTRATOR_STRICT_TEMPLATES", "false", {"strict_templates": False}),
        ("NOETL_RESULT_STORE_TTL", "7d", {"result": {"store": {"ttl": "7d"}}}),
        ("NOETL_ORCHESTRATOR_MAX_PARALLEL", " ", {}),
    ],
)
def test_a_variable_is_a_setting_as_the_executor_would_give_it(variable: str, text: str, found: dict[str, Any]) -> None:
    assert layer({variable: text}) == found


def test_variables_of_one_section_merge() -> None:
    given = {"NOETL_RETRIES_PLUGIN_BASE_MS": "5", "NOETL_RETRIES_SINK_BASE_MS": "6", "NOETL_RETRIES_PLUGIN_MAX_MS": "7"}
    assert layer(given) == {"retries": {"plugin": {"base_ms": 5, "max_ms": 7}, "sink": {"base_ms": 6}}}


@pytest.mark.parametrize(
    ("variable", "text", "words"),
    [
        ("NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS", "0", "an integer of at least 1"),
        ("NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS", "1.5", "an integer of at least 1"),
        ("NOETL_ORCHESTRATOR_CONCURRENCY_LIMIT", "1000001", "an integer of at least 1 and at most 1000000"),
        ("NOETL_ORCHESTRATOR_RATE_PER_SECOND", "0", "a number of at least 1/86400"),
        ("NOETL_TIMEOUTS_TOOL_DEFAULT_MS", "nan", "a number of at least 0"),
        ("NOETL_TIMEOUTS_TOOL_DEFAULT_MS", "-1", "a number of at least 0"),
        ("NOETL_POLICIES_ON_STEP_FAIL", "route_edge:", "one of halt, continue, route_edge:<label>"),
        ("NOETL_POLICIES_ON_PARKED", "stop", "one of wait, finish, fail"),
        ("NOETL_POLICIES_NO_NEXT_IS_ERROR", "1", "true or false"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(variable: str, text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=variable) as refused:
        layer({variable: text})
    assert words in str(refused.value)


def test_a_file_says_what_variables_say() -> None:
    text = b"capacity: 3\nretries: {plugin: {base_ms: 5}}\npolicies: {no_next_is_error: true}\negress: {allow: [a.org, b.org]}\ntoken:\n"
    assert {name: entry.text for name, entry in read(text, "c.yaml").items()} == {
        CAPACITY: "3",
        "NOETL_RETRIES_PLUGIN_BASE_MS": "5",
        "NOETL_POLICIES_NO_NEXT_IS_ERROR": "true",
        EGRESS_ALLOW: "a.org,b.org",
        "NOETL_TOKEN": "",
    }
    assert read(b"", "c.yaml") == {}
    assert read(b"# nothing\n", "c.yaml") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            b"capacity: 1\nretry:\n  plugin: {base_ms: 5}\n",
            "c.yaml:3:21: unknown setting `retry.plugin.base_ms`. Did you mean",
        ),
        (b"credential: {pg: x}\n", "unknown setting `credential.pg`"),
        (b"config: other.yaml\n", "unknown setting `config`"),
        (b"retries: 5\n", "unknown setting `retries`"),
        (b"capacity: 1\ncapacity: 2\n", "c.yaml:2:1"),
        (b"retries: {plugin: \n", "c.yaml:"),
        (b"- 1\n", "c.yaml:1:1"),
        (b"\xff\xfe\x00", "c.yaml:"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_place(text: bytes, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text, "c.yaml")
    assert words in str(refused.value)


def test_the_page_says_why_a_default_is_not_that_of_the_file_for_operation() -> None:
    entries = read((ROOT / "deploy" / "noetl.yaml").read_bytes(), "noetl.yaml")
    defaults = {name: default for name, (default, _) in VARIABLES.items()}
    defaults |= {name: str(knob.field.default or "") for name, knob in knobs().items()}
    differing = {keys()[name] for name, entry in entries.items() if entry.text.lower() != defaults[name].lower()}
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    table = page.partition("## A file for operation")[2].partition("## ")[0]
    named = {name for row in table.splitlines() if row.startswith("| `") for name in row.split("|")[1].split("`")[1::2]}
    assert named == differing


def test_every_variable_of_the_environment_in_the_promised_list_is_a_setting() -> None:
    names = {
        "ORCHESTRATOR": ("EVALUATE_WHEN_TIMEOUT_MS", "ROUTE_AFTER_ALL_SINKS"),
        "RETRIES": ("PLUGIN_MAX_ATTEMPTS", "PLUGIN_BASE_MS", "PLUGIN_MAX_MS"),
        "TIMEOUTS": ("TOOL_DEFAULT_MS", "SINK_DEFAULT_MS"),
        "DLQ": ("ENABLED", "TOPIC"),
        "TRACING": ("ENABLED", "SAMPLE_RATE", "EXPORTER", "ENDPOINT"),
        "METRICS": ("ENABLED", "PORT"),
        "LOGGING": ("LEVEL", "FORMAT"),
        "POLICIES": ("ON_STEP_FAIL", "ON_SINK_FAIL", "ON_WHEN_ERROR"),
    }
    promised = {f"NOETL_{section}_{name}" for section, found in names.items() for name in found}
    assert promised <= keys().keys()


def test_variables_win_over_the_file_and_the_file_is_that_of_home_or_the_named_one(tmp_path: Path) -> None:
    (tmp_path / "noetl.yaml").write_text("capacity: 3\nlease_seconds: 7\n")
    found = configured({HOME: str(tmp_path), CAPACITY: "9"}, HERE)
    assert (found[CAPACITY], found["NOETL_LEASE_SECONDS"]) == ("9", "7")
    assert configured({HOME: str(tmp_path), CAPACITY: " "}, HERE)[CAPACITY] == "3"
    (tmp_path / "other.yaml").write_text("capacity: 4\n")
    assert configured({HOME: str(tmp_path), CONFIG: str(tmp_path / "other.yaml")}, HERE)[CAPACITY] == "4"
    assert configured({}, HERE) == {}


def test_a_named_file_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"gone\.yaml: No such file"):
        configured({CONFIG: str(tmp_path / "gone.yaml")}, HERE)
    with pytest.raises(InvalidInput, match="Is a directory"):
        configured({CONFIG: str(tmp_path)}, HERE)
