"""Documents of `kind: Subscription`: what they mean, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.dsl.tree.canonical import canonical
from noetl.dsl.tree.normalize.subscription import OTHER_SOURCES, SOURCES
from noetl.dsl.validate import validate
from noetl.triggers.subscription import KINDS
from noetl.wiring.embedded import language_kinds
from tests.unit.dsl.tree.test_normalize import read

HEAD = "apiVersion: noetl.io/v2\nkind: Subscription\nmetadata: { name: orders, path: subs/orders }\nspec:\n"
TABLE = """\
  source: table
  auth: orders_db
  stream: public.orders
  consumer: { key: id }
  dispatch: { playbook: shop/ship, payload: { order: "{{ message.data.id }}" } }
"""


def trigger(spec: str) -> dict[str, Any]:
    """Return the trigger that a document means."""
    [found] = canonical(read(HEAD + spec))["triggers"]
    return dict(found)


def problems(text: str) -> set[tuple[str, str, int]]:
    return {(one.code, one.severity, one.start.line) for one in validate(text, "s.yaml", language_kinds())}


def test_a_document_means_a_trigger_that_starts_another_playbook() -> None:
    tree = read(HEAD + TABLE)
    assert (tree.path, [step.name for step in tree.workflow]) == ("subs/orders", ["dispatch"])
    assert {name: value.data for name, value in tree.workflow[0].tasks[0].fields.items()} == {
        "path": "shop/ship",
        "payload": "{{ workload }}",
    }
    assert trigger(TABLE) == {
        "subscription": "orders",
        "source": "table",
        "auth": "orders_db",
        "table": "public.orders",
        "key": "id",
        "dispatch": {"playbook": "shop/ship"},
        "payload": {"order": "{{ message.data.id }}"},
    }
    assert problems(HEAD + TABLE) == set()


START = "  dispatch: shop/ship\n"
SAME = [
    "  source: { kind: table, table: t, key: id }\n  auth: db\n",
    "  source: { type: postgres, stream: x }\n  table: t\n  key: id\n  auth: db\n",
    "  source: postgresql\n  stream: { table: t }\n  consumer: { key_column: id }\n  auth: { credential: db }\n",
    "  source: PG\n  stream: t\n  consumer: { key: id, durable: me }\n  credential: db\n",
]


@pytest.mark.parametrize("spec", SAME)
def test_fields_of_a_source_stand_in_several_places(spec: str) -> None:
    assert trigger(spec + START) == {
        "subscription": "orders",
        "source": "table",
        "auth": "db",
        "table": "t",
        "key": "id",
        "dispatch": {"playbook": "shop/ship"},
    }


@pytest.mark.parametrize(
    ("source", "field"),
    [("listen", "channel"), ("table", "table"), ("folder", "folder"), ("http", "url")],
)
def test_the_stream_is_what_the_source_reads(source: str, field: str) -> None:
    assert trigger(f"  source: {source}\n  stream: x\n{START}")[field] == "x"


@pytest.mark.parametrize(
    ("given", "paused"),
    [
        ("true", False),
        ("auto", False),
        ("always", False),
        ("false", True),
        ("manual", True),
        ("paused", True),
        ("{ enabled: false }", True),
        ("{ enabled: true }", False),
        ("{ mode: manual }", True),
    ],
)
def test_an_activation_may_register_it_paused(given: str, paused: bool) -> None:
    assert trigger(f"{TABLE}  activation: {given}\n").get("paused", False) is paused


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("consumer: { key: id, deliver_policy: all }", "begin", "first"),
        ("consumer: { key: id, deliver_policy: new }", "begin", "now"),
        ("runtime: { poll_interval: 30s }", "every", "30s"),
        ("every: 5m", "every", "5m"),
    ],
)
def test_other_words_for_fields(line: str, field: str, value: str) -> None:
    spec = TABLE.replace("consumer: { key: id }", line) if line.startswith("consumer") else f"{TABLE}  {line}\n"
    assert trigger(spec)[field] == value


def test_a_notification_of_a_channel_is_listened_to() -> None:
    assert trigger(f"  source: postgres\n  auth: db\n  channel: orders\n{START}")["source"] == "listen"


def test_the_key_of_dedup_identifies_an_item_over_http() -> None:
    spec = "  source: http\n  stream: https://example.com/x\n  dedup: { key: '{{ item.id }}' }\n"
    assert trigger(spec + START)["id"] == "{{ item.id }}"
    assert trigger(f"{TABLE}  dedup: {{ key: '{{{{ message.id }}}}' }}\n").get("id") is None


def test_a_name_is_made_one_of_a_trigger() -> None:
    [found] = canonical(read((HEAD + TABLE).replace("name: orders", "name: 'Orders, of the shop!'")))["triggers"]
    assert found["subscription"] == "Orders_of_the_shop"


def test_the_sources_that_a_server_reads_are_all_here() -> None:
    assert set(SOURCES.values()) == set(KINDS)
    assert not OTHER_SOURCES & SOURCES.keys()


@pytest.mark.parametrize("source", ["nats", "kafka", "pubsub", "webhook"])
def test_a_source_that_cannot_be_read_is_a_warning_that_says_so(source: str) -> None:
    text = HEAD + TABLE.replace("table", source, 1)
    assert ("NOE511", "warning", 5) in problems(text)
    assert not any(severity == "error" for _, severity, _ in problems(text))
    assert "triggers" not in canonical(read(text))
    [told] = [one for one in validate(text, "s.yaml", language_kinds()) if one.code == "NOE511"]
    assert f"'{source}'" in told.message
    assert "listen, table, folder, http" in told.fix


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("source: table", "source: tabel", "NOE105", 5),
        ("stream: public.orders", "stream: public orders", "NOE135", 7),
        ("message.data", "row.data", "NOE135", 9),
        ("consumer: { key: id }", "consumer: { kay: id }", "NOE135", 3),
        ("auth: orders_db", "auth: [a]", "NOE103", 6),
        ("dispatch: {", "dispach: {", "NOE101", 9),
        ("playbook: shop/ship", "playbok: shop/ship", "NOE104", 9),
        ("{ playbook: shop/ship,", "{", "NOE104", 9),
        ("playbook: shop/ship", "playbook: shop/ship, version: new", "NOE103", 9),
        ("noetl.io/v2", "noetl.io/v3", "NOE108", 1),
    ],
)
def test_a_mistake_is_an_error_where_it_is(old: str, new: str, code: str, line: int) -> None:
    assert (code, "error", line) in problems((HEAD + TABLE).replace(old, new, 1))


def test_what_changes_nothing_is_a_hint() -> None:
    text = HEAD + TABLE + "  mode: pull\n  runtime: { every: 5s, workers: 2 }\n"
    text = text.replace("{ playbook: shop/ship", "{ mode: one, playbook: shop/ship")
    assert problems(text) == {("NOE138", "hint", line) for line in (9, 10, 11)}
