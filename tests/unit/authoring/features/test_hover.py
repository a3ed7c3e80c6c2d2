"""Hover texts."""

from __future__ import annotations

import pytest

from noetl.authoring.features.hover import hover
from tests.unit.authoring.editing import HEAD, typed

STEP = f"{HEAD}  - step: store\n    desc: Keeps it all.\n"


def told(text: str) -> tuple[str, str]:
    """Return the word that a hover covers, and its text."""
    reading, offset = typed(text)
    found = hover(reading, offset)
    return (reading.text[found.start : found.end], found.text) if found else ("", "")


@pytest.mark.parametrize(
    ("body", "word", "parts"),
    [
        ("    tool: { ki‸nd: noop }\n", "kind", ["**kind** of a noop task", "Required."]),
        ("    tool: { kind: ht‸tp, url: x }\n", "http", ["tool kind", "Needs: `url`", "`status_code`", "```yaml"]),
        (
            "    tool: { kind: http, ur‸l: x }\n",
            "url",
            ["**url** of an http task", "Also written `endpoint`", "on the worker"],
        ),
        (
            "    next: fet‸ch\n    tool: { kind: noop }\n",
            "fetch",
            [
                "· step", "init (noop) → get (http)", "Once per `city`", "This is the entry.", "From: `store`",
                "- `store`",
            ],
        ),
        (
            "    next: { spec: { mode: incl‸usive }, arcs: [] }\n",
            "inclusive",
            ["**mode** of `next.spec`", "Default: exclusive."],
        ),
        ('    tool: { kind: noop, result: "{{ c‸tx.total }}" }\n', "ctx", ["· scope", "It exists"]),
        (
            '    tool: { kind: noop, result: "{{ ctx.to‸tal }}" }\n',
            "total",
            ["**ctx.total**", "- `fetch`: `{{ output.data.size }}`"],
        ),
        (
            '    tool: { kind: noop, result: "{{ workload.ur‸l }}" }\n',
            "url",
            ["key of the workload", "`http://127.0.0.1:1`"],
        ),
        ('    tool: { kind: noop, result: "{{ fe‸tch }}" }\n', "fetch", ["**fetch** · step"]),
        (
            '    tool: { kind: noop, result: "{{ fetch.stats.fai‸led }}" }\n',
            "failed",
            ["**fetch.stats.failed**", "items that failed"],
        ),
        ('    tool: { kind: noop, result: "{{ 1 | rou‸nd }}" }\n', "round", ["· filter", "value | round("]),
        ('    tool: { kind: noop, result: "{{ 1 is not def‸ined }}" }\n', "defined", ["· test"]),
        ('    tool: { kind: noop, result: "{{ no‸w() }}" }\n', "now", ["· function"]),
        ("    tool: { kind: noop, result: \"{{ done('fet‸ch') }}\" }\n", "fetch", ["**fetch** · step"]),
        ("    tool: { kind: postgres, query: x, auth: pg‸_main }\n", "pg_main", ["credential"]),
        (
            '    tool: [ { a: { kind: shell, command: ls } }, { kind: noop, result: "{{ a‸.stdout }}" } ]\n',
            "a",
            ["task of kind `shell`"],
        ),
        (
            '    tool: [ { a: { kind: shell, command: ls } }, { kind: noop, result: "{{ a.std‸out }}" } ]\n',
            "stdout",
            ["**a.stdout**"],
        ),
        ("    tool: { kind: noop, result: '😀 it''s {{ work‸load.url }}' }\n", "workload", ["· scope"]),
    ],
)  # fmt: skip
def test_what_is_told(body: str, word: str, parts: list[str]) -> None:
    about, text = told(STEP + body)
    assert about == word
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize(
    "body",
    [
        "    tool: { kind: noop, message: plain wo‸rds }\n", "    # a com‸ment\n    tool: { kind: noop }\n",
        "    tool: { kind: noop, result: \"{{ 'te‸xt' }}\" }\n", "    tool: { kind: noop, result: { fr‸ee: 1 } }\n",
    ],
)  # fmt: skip
def test_where_nothing_is_told(body: str) -> None:
    assert told(STEP + body) == ("", "")


def test_what_is_wrong_comes_first_with_its_rule() -> None:
    word, text = told(f"{STEP}    next: fet‸sch\n")
    assert word == "fetsch"
    assert text.startswith("**NOE201**")
    word, text = told(f"{STEP}    tool: {{ kind: http, url: x, methd‸: GET }}\n")
    assert text.startswith("**NOE502**")


def test_a_template_with_a_mistake_is_told_its_rule_and_its_names() -> None:
    text = told(f'{STEP}    tool: {{ kind: noop, result: "{{{{ ct‸x.total | uper }}}}" }}\n')[1]
    assert "· scope" in text


def test_a_document_that_cannot_be_parsed_is_explained_too() -> None:
    assert "tool kind" in told(f'{STEP}    tool: {{ kind: ht‸tp, url: "{{{{ oh\n')[1]
