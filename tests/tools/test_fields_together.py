"""Fields of a kind that exclude or require each other."""

from __future__ import annotations

import pytest

from noetl.dsl.checking.shape import findings
from noetl.dsl.reading.parse import parse
from noetl.tools import kinds


def shape_of(task: str) -> list[tuple[str, str]]:
    """What is wrong with the shape of one task, as (finding, field)."""
    document = parse(
        "{apiVersion: noetl.io/v10, kind: Playbook, metadata: {name: x, path: x}, workflow: [{step: s, tool: "
        + task
        + "}]}"
    )
    assert document.problems == ()
    return [(found.kind, found.name) for found in findings(document.root, kinds())]


@pytest.mark.parametrize(
    "task",
    [
        "{kind: http, url: /x}", "{kind: http, endpoint: /x, json: {a: 1}}",
        "{kind: http, spec: {url: /x, form: {a: 1}}}", "{kind: noop}", "{kind: noop, result: {as: word}}",
        "{kind: postgres, auth: a, table: t, mode: upsert, key: [id], values: [{id: 1}]}",
        '{kind: nats, operation: "{{ workload.operation }}"}', "{kind: nats, subject: s, data: x}",
        "{kind: nats, operation: kv_keys, bucket: b}", "{kind: artifact, action: put, data: 1}",
        "{kind: artifact, uri: s3://a/b}", "{kind: shell, command: [ls, -l], env: {RATE: 0.5, ON: true, N: 1}}",
        "{kind: python, code: 'x = 1', libs: {np: numpy, d: {from: datetime, import: [date, time]}}}",
        "{kind: python, code: 'x = 1', libs: [json]}",
        "{kind: duckdb, script: {uri: s3://a/b.sql, source: {type: s3, region: eu, credential: c}}}",
        "{kind: playbook, path: a/b, version: 0.1}", "{kind: sleep, seconds: '{{ workload.n }}'}",
    ],
)  # fmt: skip
def test_fields_that_belong_together(task: str) -> None:
    assert shape_of(task) == []


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("{kind: http, url: /x, json: {}, form: {}}", [("twice", "json or form")]),
        ("{kind: http, url: /x, json: 1, spec: {payload: 2}}", [("twice", "body or json")]),
        ("{kind: http, method: GRAB, url: /x}", [("bad-value", "method")]),
        ("{kind: sleep}", [("missing", "seconds or until")]),
        ("{kind: sleep, seconds: 1, until: x}", [("twice", "seconds or until")]),
        ("{kind: sleep, seconds: -1}", [("bad-value", "seconds")]),
        ("{kind: postgres, command: SELECT 1, mode: upsert}", [("missing", "table")]),
        ("{kind: nats}", [("missing", "subject")]),
        ("{kind: nats, operation: kv_put, bucket: b}", [("missing", "key"), ("missing", "data")]),
        ("{kind: artifact}", [("missing", "ref")]),
        ("{kind: artifact, action: put, ref: x}", [("missing", "data")]),
        ("{kind: secrets, provider: aws}", [("missing", "secret")]),
        ("{kind: script, script: {uri: ./a.sh}, source: {type: file}}", [("missing", "uri")]),
        ("{kind: python, script: {url: ./a.py}}", [("unknown-key", "url")]),
        ("{kind: python, code: x, libs: {d: {from: datetime}}}", [("missing", "import")]),
        ("{kind: transfer, source: {kind: postgres}, target: {kind: http}}", [("bad-value", "kind")]),
        ("{kind: transfer, source: {kind: file}}", [("missing", "target")]),
        ("{kind: shell, command: ls, evn: {}}", [("unknown-key", "evn")]),
    ],
)
def test_fields_that_do_not(task: str, expected: list[tuple[str, str]]) -> None:
    assert shape_of(task) == expected
