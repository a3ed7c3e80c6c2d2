"""What a subscription may hold, and what it is known by."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from noetl.schedules.spec import Problem
from noetl.triggers.subscription import SubscriptionSpec, check, described, message_key, state_id

LISTEN = {"source": "listen", "auth": "db", "channel": "news"}
TABLE = {"source": "table", "auth": "db", "table": "public.orders", "key": "id"}
FOLDER = {"source": "folder", "folder": "/srv/drop"}
HTTP = {"source": "http", "url": "https://example.com/x", "id": "{{ item.id }}"}


def spec(given: dict[str, Any], **more: Any) -> SubscriptionSpec:
    return convert({**given, **more}, SubscriptionSpec)


@pytest.mark.parametrize(
    "given",
    [
        LISTEN,
        {**LISTEN, "format": "text"},
        TABLE,
        {**TABLE, "channel": "news", "begin": "first", "every": "24h"},
        {**FOLDER, "pattern": "*.json", "after": "delete", "format": "none"},
        {**HTTP, "auth": "api", "params": {"a": "{{ cursor }}"}, "items": "{{ body.x }}", "cursor": "{{ body.next }}"},
        {**HTTP, "payload": {"n": ["{{ message.data.n }}"]}},
    ],
)
def test_each_source_has_its_fields(given: dict[str, Any]) -> None:
    check(spec(given))
    assert described(spec(given))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"source": "listen", "auth": "db"}, "channel"),
        ({"source": "listen", "channel": "x"}, "auth"),
        ({**TABLE, "key": " "}, "key"),
        ({**TABLE, "key": "id; DROP"}, "key"),
        ({**TABLE, "table": "a.b.c"}, "table"),
        ({**TABLE, "table": 'a"b'}, "table"),
        ({**TABLE, "channel": "a.b"}, "channel"),
        ({**LISTEN, "table": "x"}, "table"),
        ({**LISTEN, "format": "none"}, "format"),
        ({**TABLE, "format": "text"}, "format"),
        ({**FOLDER, "auth": "db"}, "auth"),
        ({**FOLDER, "folder": "drop"}, "folder"),
        ({**FOLDER, "pattern": "a/*"}, "pattern"),
        ({**HTTP, "url": "ftp://x"}, "url"),
        ({**HTTP, "url": "https://me:secret@example.com"}, "url"),
        ({"source": "http", "url": "https://example.com/x"}, "id"),
        ({**HTTP, "items": "{{ item }}"}, "items"),
        ({**HTTP, "id": "{{ body.id }}"}, "id"),
        ({**HTTP, "params": {"a": "{{ body }}"}}, "params.a"),
        ({**HTTP, "cursor": "{{ "}, "cursor"),
        ({**HTTP, "payload": {"n": "{{ workload.n }}"}}, "payload.n"),
        ({**HTTP, "every": "0s"}, "every"),
        ({**HTTP, "every": "soon"}, "every"),
        ({**HTTP, "every": "2d"}, "every"),
    ],
)
def test_a_mistake_names_its_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(Problem) as caught:
        check(spec(given))
    assert caught.value.field == field
    assert caught.value.fix


def test_another_source_has_another_state() -> None:
    name = state_id("a", 1, spec(TABLE))
    assert name.startswith("a@")
    assert len(name) == len("a") + 33
    assert name == state_id("a", 1, spec(TABLE, channel="x", every="1m", payload={"n": 1}))
    others = [state_id("a", 2, spec(TABLE)), state_id("a", 1, spec(TABLE, table="b")), state_id("a", 1, spec(LISTEN))]
    others.append(state_id("a", 1, spec(LISTEN, channel="b")))
    assert len({name, *others}) == 5


def test_ids_of_messages_fit_every_store() -> None:
    assert message_key("a b/é") == "a b/é"
    for odd in ("", "x" * 201, "a\nb", "\0", "\udc80"):
        assert message_key(odd).startswith("sha256:")
