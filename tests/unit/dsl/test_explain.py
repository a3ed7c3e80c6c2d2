"""Explanations: everything has a topic, every name finds it, texts match code."""

from __future__ import annotations

import pytest

from noetl.dsl.analysis.scopes import BY_ROLE, SCOPES
from noetl.dsl.explain import CATEGORIES, find, suggestions, topics
from noetl.dsl.explain.field_paths import places
from noetl.dsl.explain.pages import ROLES
from noetl.dsl.explain.wording import field_facts, listed, type_words
from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type
from noetl.dsl.rules import RULES
from noetl.expr import FILTERS, FUNCTIONS, TESTS
from noetl.wiring.embedded import language_kinds

KINDS = language_kinds()
TOPICS = topics(KINDS)


def explained(name: str) -> str:
    topic = find(name, TOPICS)
    assert topic is not None, name
    return topic.markdown


def test_everything_has_a_topic() -> None:
    names = [*KINDS, *(rule.code for rule in RULES), *(rule.name for rule in RULES), *SCOPES, *LEVELS]
    names += [*FILTERS, *TESTS, *FUNCTIONS]
    names += [field.name for level in LEVELS.values() for field in level.fields]
    names += [f"{kind.name}.{field.name}" for kind in KINDS.values() for field in kind.input.fields]
    assert [name for name in names if name not in TOPICS] == []


def test_every_topic_can_be_written() -> None:
    for name, topic in TOPICS.items():
        assert topic.entries, name
        assert topic.markdown.strip(), name
        assert "None" not in topic.entries[0].summary
        assert {entry.category for entry in topic.entries} <= set(CATEGORIES)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("http", "# http\n\nSend one HTTP request"),
        ("http", "- `url`: text, required. URL of the request. Alias: `endpoint`."),
        ("http", "At most one of `body`, `json`, `data` and `form` is allowed."),
        ("http", "`outcome.http`"),
        ("http", "```yaml\n- fetch:\n    kind: http"),
        ("sleep", "Exactly one of `seconds` and `until` is required."),
        ("duckdb", "the extra `duckdb`"),
        ("duckdb", "`mode` requires `table`."),
        ("NOE201", "# NOE201: unknown-arc-target\n\nError, about names."),
        ("NOE201", "## Reported\n\n```yml\napiVersion"),
        ("unknown-arc-target", "# NOE201"),
        ("loop.spec.mode", "- Type: `sequential` or `parallel`\n- Default: `sequential`"),
        ("max_in_flight", "May be a template, rendered by the server."),
        ("executor.spec.entry_step", "- Default: the first in the file"),
        ("step.loop", "## loop"),
        ("step.loop", "- `iterator`: text. Name of the current item in templates. Example: `iterator: city`."),
        ("arc.when", "A field of an arc of `next`, at"),
        ("task.timeout_ms", "Timeout of one attempt, in milliseconds."),
        ("rule.then.do", "- Required."),
        ("python.script", "## python.script"),
        ("tojson", "value | tojson("),
        ("done", "{{ done(step) }}"),
        ("ctx", "State of the execution."),
        ("ctx", "Readable in gates; `loop`;"),
        ("_prev", "Readable in a task's fields; a task's policy and its `set`."),
        ("startswith", "value.startswith("),
        ("outcome", "- `retryable`: Whether a retry makes sense."),
        ("event", "- `signal.received`"),
        ("inclusive", "# next.spec.mode"),
        ("jump", "# rule.then.do"),
    ],
)
def test_topics_say_what_the_code_knows(name: str, said: str) -> None:
    assert said in explained(name)


def test_a_name_of_several_things_tells_all_of_them() -> None:
    text = explained("input")
    assert text.startswith("`input` has ")
    assert "- scope `input`: `args` overlaid with the inputs of the step and the task." in text
    assert "- field `task.input`: Inputs of the task. They override those of the step." in text


def test_the_same_field_at_several_places_is_told_once() -> None:
    text = explained("durability")
    assert text.count("# ") == 1
    assert "`executor.spec.durability`, `workflow.spec.durability`" in text
    assert "workbook" not in text


@pytest.mark.parametrize("name", ["noe201", "NOE201 ", "Unknown_Arc_Target", "HTTP", "workflow[].loop.spec.mode"])
def test_spelling_is_forgiven(name: str) -> None:
    assert find(name, TOPICS) is not None


def test_a_value_is_explained_by_its_field_unless_something_is_called_so() -> None:
    assert {entry.category for entry in TOPICS["best_effort"].entries} == {"value"}
    assert "value" not in {entry.category for entry in TOPICS["http"].entries}


def test_unknown_names_get_the_nearest() -> None:
    assert find("htpt", TOPICS) is None
    assert suggestions("htpt", TOPICS)[0] == "http"
    assert suggestions("NOE2011", TOPICS)[0].startswith("NOE2")
    assert suggestions("qqqqqqqqqqqqqq", TOPICS) == []


def test_places_are_paths_of_keys_from_the_root() -> None:
    paths = {".".join(place.path) for place in places()}
    assert {"apiVersion", "workflow.loop.spec.policy.failure.mode", "workflow.next.arcs.when"} <= paths
    assert {"workflow.tool.spec.policy.rules.else.then.do", "workbook.tool.kind"} <= paths


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Type(), "anything"),
        (Text(), "text"),
        (Text(code="sql"), "text (SQL)"),
        (Flag(), "true or false"),
        (Number(), "number"),
        (Number(integer=True, least=1, most=5), "whole number at least 1 and at most 5"),
        (Number(least=1 / 86_400, finite=True), "finite number at least 1/86400"),
        (Choice(("a",), prefixes=("b:",)), "`a` or `b:…`"),
        (ListOf(Text()), "list of text"),
        (ListOf(Type()), "list"),
        (ListOf(OneOf((Number(), Text()))), "list of (number or text)"),
        (MapOf(Flag()), "map of true or false"),
        (MapOf(Type()), "map"),
        (LevelOf("loop"), "map `loop`"),
        (LevelOf("x", Level("x", "", (Field("a", Text(), ""), Field("b", Text(), "")))), "map (`a`, `b`)"),
        (OneOf((Flag(), Text(), Text(code=""))), "true or false or text"),
    ],
)
def test_types_in_words(kind: Type, words: str) -> None:
    assert type_words(kind) == words


def test_every_role_of_a_template_is_told() -> None:
    told = [role for roles, _ in ROLES for role in roles]
    assert sorted(told) == sorted(BY_ROLE)
    for roles, _ in ROLES:
        assert len({BY_ROLE[role] for role in roles}) == 1


def test_links_lead_to_levels() -> None:
    assert type_words(ListOf(LevelOf("arc")), link=True) == "list of [arc](#arc)"


def test_a_field_in_one_line() -> None:
    field = Field("a", Flag(), "What it does.", required=True, default="the first", example="true", aliases=("b", "c"))
    assert field_facts(field) == (
        "true or false, required, default the first. What it does. Alias: `b` or `c`. Example: `a: true`."
    )


def test_lists_in_a_sentence() -> None:
    assert [listed([]), listed(["a"]), listed(["a", "b"]), listed("abc", "or")] == ["", "a", "a and b", "a, b or c"]
