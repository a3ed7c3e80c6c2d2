"""Test files: problems have a position and the nearest name; good ones are read."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from noetl.dsl.json_schema import level_schema
from noetl.dsl.reading.nodes import plain
from noetl.dsl.reading.parse import parse
from noetl.testing.cases.files.levels import FILE, LEVELS
from noetl.testing.cases.files.names import Names, name_troubles
from noetl.testing.cases.files.read import TestFile, duration_ms, read_tests
from noetl.testing.scenario import read_playbook
from noetl.wiring.embedded import language_kinds

PLAYBOOK = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: play, path: test/play}
workflow:
  - {step: fetch, tool: [{get: {kind: http, url: "http://127.0.0.1/"}}], next: store}
  - {step: store, tool: {kind: noop}}
"""
GOOD = """
mocks: {fetch: {ok: 1}}
tests:
  - name: one
    expect: {status: completed}
"""


def read(text: str) -> TestFile:
    return read_tests(dedent(text).encode(), "play.test.yaml", "play.test.yaml")


def troubles(text: str) -> list[str]:
    found = read(text)
    named = Names(read_playbook(PLAYBOOK), [read_playbook(PLAYBOOK)], language_kinds())
    return [str(one) for one in found.troubles or name_troubles(found, named)]


def test_a_good_file_has_no_troubles_and_names_its_playbook() -> None:
    found = read(GOOD)
    assert (found.troubles, found.playbook, [case.name for case in found.cases]) == ([], "play.yaml", ["one"])
    assert troubles(GOOD) == []


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("mokcs: {}\n" + GOOD, "1:1", "'mokcs' is not a key of a test file. Did you mean 'mocks'?"),
        (GOOD.replace("status:", "statsu:"), "5:14", "'statsu' is not a key of `expect`. Did you mean 'status'?"),
        (GOOD.replace("completed", "complete"), "5:22", "not 'complete'. Did you mean 'completed'?"),
        (GOOD.replace("fetch:", "fetsh:"), "2:9", "Unknown step or task `fetsh`. Did you mean `fetch`?"),
        (GOOD.replace("fetch:", "fetch.gte:"), "2:9", "Did you mean `fetch.get`?"),
        (GOOD.replace("{ok: 1}", "{ok: 1, error: timeout}"), "2:16", "An outcome is one of `ok` and `error`"),
        (
            GOOD.replace("{ok: 1}", "{error: timeuot}"),
            "2:24",
            "Unknown kind of error `timeuot`. Did you mean `timeout`?",
        ),
        (GOOD.replace("{ok: 1}", "{error: {kind: 3}}"), "2:31", "Unknown kind of error `3`"),
        (GOOD.replace("mocks:", "messages: [{at: 1, signal: null}]\nmocks:"), "2:12", "A message is one of signal"),
        (GOOD.replace("{ok: 1}", "{ok: 1, takes: soon}"), "2:31", "`soon` is not a duration"),
        (GOOD.replace("{status: completed}", "{}"), "5:13", "The case has no expectations"),
        (GOOD.replace("    expect: {status: completed}", ""), "4:5", "A case needs 'expect'"),
        (GOOD.replace("status: completed", "route: [fetch, stor]"), "5:29", "Did you mean `store`?"),
        (GOOD.replace("status: completed", "events: [step.doen]"), "5:23", "Did you mean `step.done`?"),
        (GOOD.replace("mocks:", "real: [pyton]\nmocks:"), "2:8", "Unknown tool kind `pyton`. Did you mean `python`?"),
        (GOOD.replace("mocks:", "messages: [{at: 1}]\nmocks:"), "2:12", "A message is one of signal, patch"),
        (GOOD.replace("{ok: 1}", "{items: {0: {ok: 1}}}"), "2:24", "The step `fetch` has no loop"),
        ("tests: []", "1:8", "'tests' is empty"),
        ("mocks: {}", "1:1", "neither 'tests' nor 'saga'"),
        ("tests: [", "1:9", ""),
        (GOOD + "  - name: one\n    expect: {status: failed}\n", "6:11", "Two cases are named `one`"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, place: str, said: str) -> None:
    found = troubles(text)
    assert len(found) == 1, found
    assert found[0].startswith(f"play.test.yaml:{place}: ")
    assert said in found[0]


def test_keys_of_a_case_go_over_those_of_the_file() -> None:
    found = read(
        """
        workload: {a: {x: 1, y: 2}}
        mocks: {fetch: {ok: 1}, store: {ok: 2}}
        tests:
          - {name: one, workload: {a: {y: 3}}, mocks: {fetch: [{error: timeout}]}, expect: {status: failed}}
        """
    )
    given = found.cases[0].given
    assert given.workload == {"a": {"x": 1, "y": 3}}
    assert given.mocks == {"fetch": [{"error": "timeout"}], "store": {"ok": 2}}


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        (2, 2_000),
        ("250ms", 250),
        ("30d", 2_592_000_000),
        ("1h30m", 5_400_000),
        ("1.5s", 1_500),
        ("x", None),
        ("", None),
    ],
)
def test_durations(text: object, ms: float | None) -> None:
    assert duration_ms(text) == ms


def test_the_schema_takes_what_the_reader_takes() -> None:
    schema = level_schema(FILE, "noetl:test", "NoETL tests")
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    validator.validate(plain(parse(GOOD).root))
    assert list(validator.iter_errors(plain(parse(GOOD.replace("status:", "statsu:")).root)))


def test_every_field_says_what_it_is_for() -> None:
    for level in LEVELS:
        for field in level.fields:
            assert field.summary.endswith("."), (level.name, field.name)


TEXTS = [
    path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[3] / "examples").rglob("*.test.yaml"))
]
PIECES = [
    "", " ", "- ", ": ", "{}", "[]", "null", "\n", "  ", "x", "0", "true", "{{ x }}", "saga", "items", "else",
    "&a *a",
]  # fmt: skip


@given(st.sampled_from(TEXTS), st.integers(0, 4_000), st.integers(0, 30), st.sampled_from(PIECES))
def test_a_broken_file_is_told_and_never_raises(text: str, at: int, cut: int, piece: str) -> None:
    at %= len(text)
    found = read_tests((text[:at] + piece + text[at + cut :]).encode(), "play.test.yaml", "play.test.yaml")
    named = Names(read_playbook(PLAYBOOK), [read_playbook(PLAYBOOK)], language_kinds())
    for one in (*found.troubles, *([] if found.troubles else name_troubles(found, named))):
        assert one.start.line >= 1
        assert one.message
