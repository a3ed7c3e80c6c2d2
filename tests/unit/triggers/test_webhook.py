"""Webhooks as they are written: each mistake with its field."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.schedules.spec import Problem
from noetl.triggers.webhook import WebhookSpec, check


@pytest.mark.parametrize(
    ("fields", "field", "text"),
    [
        ({"credential": " "}, "credential", "needs a credential"),
        ({"auth": "github", "header": "X-Own"}, "header", "has no `header`"),
        ({"auth": "stripe", "prefix": "v1="}, "prefix", "has no `prefix`"),
        ({"auth": "secret", "encoding": "base64"}, "encoding", "has no `encoding`"),
        ({"auth": "github", "tolerance": 60}, "tolerance", "has no `tolerance`"),
        ({"header": "X Sig"}, "header", "no name of a header"),
        ({"header": "X-Sig\r\nX-Other"}, "header", "no name of a header"),
        ({"timestamp_header": "Zeitstempel:"}, "timestamp_header", "no name of a header"),
        ({"tolerance": "soon"}, "tolerance", "is no duration"),
        ({"tolerance": 0}, "tolerance", "out of range"),
        ({"wait": "31s"}, "wait", "out of range"),
        ({"dedup": "{{ body.id"}, "dedup", "cannot be read"),
        ({"payload": {"a": [{"b": "{{ ctx.n }}"}]}}, "payload.a.b", "has no `ctx`"),
    ],
)
def test_a_mistake_names_its_field(fields: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(Problem) as caught:
        check(WebhookSpec(**{"auth": "hmac", "credential": "c", **fields}))
    assert caught.value.field == field
    assert text in caught.value.what
    assert caught.value.fix


def test_templates_read_the_delivery() -> None:
    payload = {"a": "{{ body.a | default(query.a) }} {{ headers['x-event'] }} {{ digest }}", "n": 1}
    check(WebhookSpec("stripe", "c", tolerance="1m", dedup="{{ body.id }}", payload=payload, wait="30s"))
