"""Notifications over HTTP: made, tested, sent to real receivers, deleted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from noetl.server.auth.vault import new_key
from noetl.settings import ServerSettings
from tests.mail_server import mail_server
from tests.server.serving import FAILS, PATIENCE_S, Served, bearer, happens, in_process, playbook, secret
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
SERVER = ServerSettings(key=new_key(), public_url="https://noetl.example.com")
ASKS = playbook(
    "  - {step: ask, tool: {kind: wait, signal: go}, next: after}\n"
    "  - {step: after, tool: {kind: noop, result: '{{ ask.approved }}'}}\n",
    "asks",
)


async def make(served: Served, status: int = 201, **fields: Any) -> Any:
    body = {"name": "n", "path": "test/*", "on": ["failed"], "channel": "webhook", **fields}
    return await served.json("POST", "/api/notifications", body, status=status)


async def keep(served: Served, name: str, **data: Any) -> None:
    await served.json("PUT", f"/api/credentials/{name}", {"data": data})


async def try_out(served: Served, name: str = "n") -> Any:
    """Send a test message, and return it once it is delivered or dead."""
    number = (await served.json("POST", f"/api/notifications/{name}/test", {}, status=201))["number"]
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while (row := await served.json("GET", f"/api/outbox/{number}"))["state"] == "pending":
        assert asyncio.get_running_loop().time() < end, row
        await asyncio.sleep(0.05)
    return row


async def test_a_notification_is_made_listed_shown_and_deleted(tmp_path: Path) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await keep(served, "slack", url="https://hooks.example.com/T/secret-part")
        row = await make(served, channel="slack", credential="slack", on=["failed", "approval", "failed"])
        assert (row["on"], row["path"], row["problem"]) == (["failed", "approval"], "test/*", "")
        shown = await served.json("GET", "/api/notifications/n")
        assert shown == row
        assert "secret-part" not in json.dumps(shown)
        page = await served.json("GET", "/api/notifications?limit=1")
        assert (page["notifications"], page["next"]) == ([row], "n")
        assert (await served.json("GET", "/api/notifications?path=other"))["notifications"] == []
        again = await make(served, 409, channel="slack", credential="slack")
        assert "There is a notification" in again["detail"]
        await served.json("DELETE", "/api/credentials/slack")
        assert "no credential `slack`" in (await served.json("GET", "/api/notifications/n"))["problem"]
        assert await served.json("DELETE", "/api/notifications/n") == {"removed": 1}
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/test")):
            body: dict[str, Any] | None = {} if method == "POST" else None
            await served.json(method, f"/api/notifications/n{path}", body, status=404)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"on": []}, "on"),
        ({"on": ["ended"]}, "on"),
        ({"channel": "pigeon"}, "channel"),
        ({"name": "a b"}, "name"),
        ({"url": "nonsense"}, "url"),
        ({"url": "https://hooks.slack.com/services/T"}, "url"),
        ({}, "credential"),
        ({"credential": "none"}, "credential"),
        ({"channel": "slack", "credential": "plain"}, "credential"),
        ({"channel": "email", "credential": "plain", "to": ["a@b"]}, "credential"),
        ({"channel": "email", "credential": "plain", "to": ["a"]}, "to"),
        ({"url": "https://example.com", "on": ["sla"]}, "sla"),
    ],
)
async def test_a_bad_notification_is_refused(tmp_path: Path, fields: dict[str, Any], where: str) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await keep(served, "plain", token="t")
        problem = await make(served, 422, **fields)
        assert problem["fix"]
        assert where in json.dumps(problem)
        assert (await served.json("GET", "/api/notifications"))["notifications"] == []


async def test_every_channel_gets_a_failure(tmp_path: Path, web: Web) -> None:
    async with mail_server() as mail, in_process(tmp_path, SERVER) as served, served.embedded.run_worker(""):
        await keep(served, "slack", url=f"{web.url}/json?slack")
        await keep(served, "token", token="t-123")
        await keep(served, "mail", host="127.0.0.1", port=mail.port, tls="none", **{"from": "noetl@example.com"})
        await make(served, name="hook", url=f"{web.url}/json?hook", credential="token")
        await make(served, name="slack", channel="slack", credential="slack")
        await make(served, name="mail", channel="email", credential="mail", to=["ops@example.com"])
        await make(served, name="other", path="team-b/*", url=f"{web.url}/json?other")
        failed = await served.start(FAILS)
        await served.until(failed, "failed")
        await happens(lambda: len(web.asked) == 2 and len(mail.mails) == 1, "three messages")
        bodies = {asked.path: (json.loads(asked.body), asked.headers) for asked in web.asked}
        body, headers = bodies["/json?hook"]
        link = f"https://noetl.example.com/api/executions/{failed}"
        assert (body["event"], body["execution_id"], body["path"]) == ("failed", failed, "test/fails")
        assert (body["status"], body["url"]) == ("failed", link)
        assert "division" in body["error"]
        assert headers["authorization"] == "Bearer t-123"
        assert headers["idempotency-key"].startswith("notification:")
        text, plain = bodies["/json?slack"]
        assert list(text) == ["text"]
        assert link in text["text"]
        assert "authorization" not in plain
        assert mail.mails[0]["Subject"] == "[NoETL] test/fails failed"
        assert link in mail.mails[0].get_content()  # type: ignore[attr-defined]


async def test_an_approval_and_a_dead_letter_are_told(tmp_path: Path, web: Web) -> None:
    async with in_process(tmp_path, ServerSettings(key=new_key())) as served, served.embedded.run_worker(""):
        await make(served, on=["approval", "dead_letter"], url=f"{web.url}/json")
        waits = await served.start(ASKS)
        failed = await served.start(FAILS)
        await happens(lambda: len(web.asked) == 2, "two messages")
        found = {body["event"]: body for body in (json.loads(asked.body) for asked in web.asked)}
        asks, letter = found["approval"], found["dead_letter"]
        assert (asks["execution_id"], asks["step"], asks["signal"]) == (waits, "ask", "go")
        assert f"noetl approve {waits}" in asks["text"]
        assert letter["execution_id"] == failed
        [row] = (await served.json("GET", "/api/dlq"))["letters"]
        assert letter["letter_id"] == row["message_id"]


async def test_what_cannot_be_delivered_shows_no_secret(tmp_path: Path, web: Web) -> None:
    async with in_process(tmp_path, SERVER) as served:
        await keep(served, "slack", url=f"{web.url}/status/very-secret-part/404")
        await make(served, channel="slack", credential="slack")
        row = await try_out(served)
        assert row["state"] == "dead"
        assert "404" in row["error"]
        assert "very-secret-part" not in json.dumps(row)
        assert json.loads(web.asked[0].body) == {"text": "Test of the notification for test/*"}


async def test_egress_rules_hold_for_notifications(tmp_path: Path, web: Web) -> None:
    async with mail_server() as mail, in_process(tmp_path, SERVER, egress_deny=("127.0.0.1",)) as served:
        await keep(served, "mail", host="127.0.0.1", port=mail.port, tls="none", **{"from": "noetl@example.com"})
        await make(served, url=f"{web.url}/json")
        await make(served, name="m", channel="email", credential="mail", to=["ops@example.com"])
        for name in ("n", "m"):
            row = await try_out(served, name)
            assert (row["state"], row["error"].split(":")[0]) == ("dead", "EGRESS_DENIED")
        assert web.asked == []
        assert mail.said == []


async def test_an_editor_makes_what_sends_credentials(tmp_path: Path) -> None:
    roles = {role: bearer(await secret(tmp_path, role)) for role in ("viewer", "operator", "editor")}
    async with in_process(tmp_path, ServerSettings(auth="token", key=new_key())) as served:
        body = {"name": "n", "path": "*", "on": ["failed"], "channel": "webhook", "url": "https://example.com"}
        for role, status in (("viewer", 403), ("operator", 403), ("editor", 201)):
            await served.json("POST", "/api/notifications", body, status=status, headers=roles[role])
        await served.json("GET", "/api/notifications/n", status=200, headers=roles["viewer"])


async def test_a_playbook_brings_its_notifications_along(tmp_path: Path) -> None:
    entry = {"name": "ops", "on": ["failed"], "channel": "webhook", "url": "http://127.0.0.1:9/x"}
    text = playbook("  - step: one\n    tool: {kind: noop}\n", "told", notifications=[entry])
    async with in_process(tmp_path) as served:
        await served.register(text)
        [row] = (await served.json("GET", "/api/notifications"))["notifications"]
        assert (row["notification_id"], row["path"], row["owner"], row["on"]) == (
            "test:told:ops", "test/told", "test/told", ["failed"],
        )  # fmt: skip
        refused = await served.json("DELETE", "/api/notifications/test:told:ops", None, 409)
        assert "pause the notification" in refused["fix"]
        assert (await served.json("POST", "/api/notifications/test:told:ops/pause"))["paused"] is True
        await served.register(text.replace("127.0.0.1:9/x", "127.0.0.1:9/y"))
        [row] = (await served.json("GET", "/api/notifications"))["notifications"]
        assert (row["url"], row["paused"]) == ("http://127.0.0.1:9/y", True)
        await served.register(playbook("  - step: one\n    tool: {kind: noop}\n", "told"))
        assert (await served.json("GET", "/api/notifications"))["notifications"] == []
