"""What a notification may hold, whom it concerns, and what it says."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.schedules.spec import Problem
from noetl.triggers.notification import (
    EVENTS,
    News,
    NotificationSpec,
    address_in,
    check,
    is_for,
    mail_problem,
    payload_of,
    text_of,
)

NEWS = News("failed", "7", "etl/load", 5, "failed", "one", "<b> & zero")


def spec(**more: Any) -> NotificationSpec:
    fields: dict[str, Any] = {"on": ("failed",), "channel": "slack", "credential": "c"}
    return NotificationSpec(**{**fields, **more})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"channel": "webhook"},
        {"channel": "webhook", "credential": "", "url": "http://127.0.0.1:80/x?a=1"},
        {"channel": "email", "to": ("ops@example.com", "a.b+c@x.org")},
        {"on": ("sla", "approval"), "sla": "2h"},
    ],
)
def test_a_good_notification_is_taken(more: dict[str, Any]) -> None:
    check(spec(**more))


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"on": ()}, "on"),
        ({"credential": " "}, "credential"),
        ({"url": "https://example.com"}, "url"),
        ({"to": ("a@b.c",)}, "to"),
        ({"channel": "webhook", "credential": ""}, "credential"),
        ({"channel": "webhook", "url": "ftp://example.com"}, "url"),
        ({"channel": "webhook", "url": "https://[x"}, "url"),
        ({"channel": "webhook", "url": "https://x:99999/"}, "url"),
        ({"channel": "webhook", "url": "https://x/\n"}, "url"),
        ({"channel": "webhook", "url": "https://u:p@example.com"}, "url"),
        ({"channel": "webhook", "url": "https://hooks.slack.com/services/T/B/x"}, "url"),
        ({"channel": "email"}, "to"),
        ({"channel": "email", "to": ("ops",)}, "to"),
        ({"channel": "email", "to": ("a@b\r\nBcc: x@y",)}, "to"),
        ({"channel": "email", "to": ("a@b", "ö@b")}, "to"),
        ({"channel": "email", "to": ("a@b",), "credential": ""}, "credential"),
        ({"on": ("sla",)}, "sla"),
        ({"on": ("sla",), "sla": "soon"}, "sla"),
        ({"on": ("sla",), "sla": "9999w"}, "sla"),
        ({"sla": "2h"}, "sla"),
    ],
)
def test_a_bad_notification_is_refused_with_its_field(more: dict[str, Any], field: str) -> None:
    with pytest.raises(Problem) as caught:
        check(spec(**more))
    assert caught.value.field == field
    assert caught.value.fix.endswith(".")


def test_a_pattern_is_a_path_or_a_namespace() -> None:
    assert is_for("team-a/etl/load", "team-a/*")
    assert is_for("etl/load", "etl/load")
    assert not is_for("team-b/load", "team-a/*")
    assert not is_for("Team-a/load", "team-a/*")


def test_a_text_has_a_link_or_names_the_command() -> None:
    assert text_of(NEWS, "https://n.example.com/").endswith("Execution 7: https://n.example.com/api/executions/7")
    assert text_of(NEWS, "").splitlines() == [
        "etl/load failed in step one",
        "<b> & zero",
        "Execution 7: noetl explain 7",
    ]
    asks = News("approval", "7", "etl/load", 5, step="ask", signal="go")
    assert text_of(asks, "") == (
        "etl/load waits for an approval in step ask: go\nExecution 7: noetl explain 7, noetl approve 7"
    )
    letter = News("dead_letter", "7", "etl/load", 5, letter_id="7-ab")
    assert "noetl dlq show 7-ab" in text_of(letter, "")
    assert len(text_of(News("failed", "7", "p", 5, error="x" * 9_999), "")) < 1_100
    for event in (*EVENTS, "test"):
        assert "\n" not in text_of(News(event, "", "a\nb", 5), "")


def test_each_channel_gets_its_own_body() -> None:
    assert list(payload_of("n", spec(), NEWS, "")) == ["text"]
    assert "&lt;b&gt; &amp; zero" in payload_of("n", spec(), NEWS, "")["text"]
    mail = payload_of("n", spec(channel="email", to=("a@b",)), NEWS, "")
    assert (mail["to"], mail["subject"]) == (["a@b"], "[NoETL] etl/load failed in step one")
    body = payload_of("n", spec(channel="webhook"), NEWS, "https://n")
    assert body["url"] == "https://n/api/executions/7"
    assert (body["notification"], body["event"], body["error"], body["at"]) == ("n", "failed", "<b> & zero", 5)
    assert "url" not in payload_of("n", spec(channel="webhook"), NEWS, "")


def test_a_credential_must_hold_what_its_channel_needs() -> None:
    assert address_in({"url": "https://x"}) == address_in({"value": "https://x"}) == "https://x"
    assert address_in({"url": 5}) == address_in({"url": "file:///etc/passwd"}) == address_in({}) == ""
    assert mail_problem({"host": "mail", "from": "a@b", "port": "587", "tls": "none"}) == ""
    wrong: list[dict[str, Any]] = [
        {"port": "x"},
        {"port": 70_000},
        {"tls": "maybe"},
        {"tls": []},
        {"host": 5},
        {"from": ""},
    ]
    for bad in ({}, *wrong):
        assert mail_problem({"host": "m", "from": "a@b", **bad} if bad else {})
