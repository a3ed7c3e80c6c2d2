"""Signatures have names and types, and no values."""

from __future__ import annotations

import pytest

from noetl.observe.signatures import call_signature, signature_of


def test_the_shape_of_data_has_keys_and_types() -> None:
    data = {"id": 7, "rows": [{"name": "x", "tags": []}], "none": None, "deep": {"a": {"b": {"c": 1}}}}
    assert signature_of(data) == ("{id: int, rows: [{name: str, tags: []}], none: null, deep: {a: {b: {…}}}}")
    assert signature_of({f"k{n}": n for n in range(100)}).endswith("…}")


@pytest.mark.parametrize(
    ("kind", "fields", "shown"),
    [
        ("http", {"url": "https://api.example.com/users/{{ id }}"}, "GET https://api.example.com/users/{id}"),
        ("http", {"method": "POST", "url": "{{ workload.api }}/x?token={{ t }}"}, "POST {workload.api}/x"),
        ("http", {"url": "https://user:pass@h/{{ a | default('secret') }}"}, "GET https://h/{…}"),
        ("postgres", {"query": "-- all\nselect * from t where password = 'x'"}, "SELECT"),
        ("postgres", {"table": "orders", "mode": "upsert", "values": [{"a": 1}]}, "upsert orders"),
        ("duckdb", {"table": "{{ workload.t }}", "values": 1}, "write {workload.t}"),
        ("python", {"code": "key = 'abc'", "libs": {}}, "code, libs"),
        ("shell", {"command": "curl -u me:secret"}, "command"),
    ],
)
def test_a_call_is_shown_without_what_it_sends(kind: str, fields: dict[str, object], shown: str) -> None:
    assert call_signature(kind, fields) == shown
